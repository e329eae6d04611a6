#include "backend/webgpu/frame.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/text.hpp"

namespace loom::webgpu {
namespace {

// Dispatches in one submission: enough for a token or a training step of ordinary size, few enough
// that drivers with a watchdog see an end.
constexpr size_t kMaxDispatches = 8192;
constexpr size_t kMaxPipelines = 1024;
// Bytes of all tables of a submission.
constexpr int64_t kTables = int64_t{1} << 18;
// Bytes that are written between dispatches of a submission.
constexpr int64_t kStaging = int64_t{1} << 20;

}  // namespace

Frame::~Frame() {
  for (const auto& [key, pipeline] : pipelines_) {
    gpu_->api().ComputePipelineRelease(pipeline.pipeline);
  }
  gpu_->destroy(temporary_);
  for (const Sent* sent : {&uniform_buffer_, &table_buffer_, &staging_buffer_}) {
    gpu_->destroy(sent->buffer);
  }
}

void Frame::drop() {
  copies_.clear();
  dispatches_.clear();
  uniforms_.clear();
  table_.clear();
  staged_.clear();
}

Result<Place> Frame::temporary(int64_t bytes) {
  if (bytes > temporary_bytes_) {
    LOOM_TRY(flush());
    LOOM_TRY(gpu_->wait());
    gpu_->destroy(temporary_);
    temporary_ = nullptr;
    temporary_bytes_ = 0;
    const int64_t wanted = round_up(bytes + bytes / 2, 4096);
    LOOM_ASSIGN(temporary_, gpu_->create_buffer(wanted, wgpu::kStorage));
    temporary_bytes_ = wanted;
  }
  return Place{temporary_, temporary_bytes_, 0, temporary_bytes_};
}

Result<Place> Frame::table(std::span<const uint32_t> words) {
  const auto bytes = static_cast<int64_t>(words.size()) * 4;
  if (bytes > kTables) return make_error(Code::internal, "a dispatch with too large a table");
  if (static_cast<int64_t>(table_.size()) * 4 + bytes > kTables) LOOM_TRY(flush());
  LOOM_TRY(reserve(table_buffer_, kTables, wgpu::kStorage));
  const auto offset = static_cast<int64_t>(table_.size()) * 4;
  table_.insert(table_.end(), words.begin(), words.end());
  return Place{table_buffer_.buffer, kTables, offset, bytes};
}

Status Frame::write(const Place& to, const void* data, int64_t bytes) {
  const auto staged = static_cast<int64_t>(staged_.size());
  const bool empty = dispatches_.empty() && copies_.empty();
  if (empty || staged + bytes > kStaging || bytes % 4 != 0 || to.offset % 4 != 0) {
    LOOM_TRY(flush());
    return gpu_->write(to.buffer, to.offset, data, bytes);
  }
  LOOM_TRY(reserve(staging_buffer_, kStaging, wgpu::kCopySrc));
  const auto* begin = static_cast<const std::byte*>(data);
  staged_.insert(staged_.end(), begin, begin + bytes);
  copy(Place{staging_buffer_.buffer, kStaging, staged, bytes}, to, bytes);
  return {};
}

Status Frame::reserve(Sent& to, int64_t bytes, wgpu::Flags usage) {
  if (to.bytes >= bytes) return {};
  gpu_->destroy(to.buffer);
  to = {};
  LOOM_ASSIGN(to.buffer, gpu_->create_buffer(bytes, usage | wgpu::kCopyDst));
  to.bytes = bytes;
  return {};
}

Status Frame::send(Sent& to, const void* data, int64_t bytes) {
  if (bytes == 0) return {};
  const auto* begin = static_cast<const std::byte*>(data);
  const auto count = static_cast<size_t>(bytes);
  if (to.last.size() >= count && std::memcmp(to.last.data(), begin, count) == 0) return {};
  to.last.assign(begin, begin + bytes);
  return gpu_->write(to.buffer, 0, data, bytes);
}

Status Frame::send_all() {
  const auto bytes = static_cast<int64_t>(uniforms_.size());
  const int64_t wanted = round_up(std::max(bytes * 3 / 2, int64_t{1}), int64_t{1} << 16);
  if (uniform_buffer_.bytes < bytes) LOOM_TRY(reserve(uniform_buffer_, wanted, wgpu::kUniform));
  LOOM_TRY(send(uniform_buffer_, uniforms_.data(), bytes));
  LOOM_TRY(send(table_buffer_, table_.data(), static_cast<int64_t>(table_.size()) * 4));
  return send(staging_buffer_, staged_.data(), static_cast<int64_t>(staged_.size()));
}

Status Frame::flush() {
  if (dispatches_.empty() && copies_.empty()) return {};
  LOOM_TRY(send_all());
  const wgpu::Api& api = gpu_->api();
  const wgpu::CommandEncoder encoder = api.DeviceCreateCommandEncoder(gpu_->device(), nullptr);
  const Status status = encode(encoder);
  std::vector<std::string_view> timed;
  if (profile_ != nullptr && !dispatches_.empty()) {
    for (const Dispatch& dispatch : dispatches_) timed.push_back(dispatch.name);
    profile_->resolve(encoder, static_cast<uint32_t>(timed.size()));
  }
  counts_->dispatches += static_cast<int64_t>(dispatches_.size());
  drop();
  if (!status.ok()) {
    api.CommandEncoderRelease(encoder);
    return status;
  }
  ++counts_->submits;
  LOOM_TRY(gpu_->submit(encoder));
  return timed.empty() ? Status{} : profile_->collect(timed);
}

// All dispatches in one pass but for copies between them; in one each, with its times, while they
// are profiled.
Status Frame::encode(wgpu::CommandEncoder encoder) {
  const wgpu::Api& api = gpu_->api();
  wgpu::ComputePassEncoder pass = nullptr;
  size_t next = 0;  // copy
  const auto end = [&] {
    if (pass == nullptr) return;
    api.ComputePassEncoderEnd(pass);
    api.ComputePassEncoderRelease(pass);
    pass = nullptr;
  };
  const auto copy_before = [&](size_t number) {
    for (; next < copies_.size() && copies_[next].before <= number; ++next) {
      end();
      const Copy& copy = copies_[next];
      api.CommandEncoderCopyBufferToBuffer(
          encoder, copy.from.buffer, static_cast<uint64_t>(copy.from.offset), copy.to.buffer,
          static_cast<uint64_t>(copy.to.offset), static_cast<uint64_t>(copy.bytes));
    }
  };
  const Binding uniforms{uniform_buffer_.buffer, 0, kUniformBlock};
  wgpu::ComputePipeline bound = nullptr;
  const Dispatch* before = nullptr;
  wgpu::BindGroup group = nullptr;
  uint32_t number = 0;
  for (const Dispatch& dispatch : dispatches_) {
    if (profile_ != nullptr) end();
    copy_before(number);
    if (pass == nullptr) {
      const wgpu::TimestampWrites times =
          profile_ != nullptr ? profile_->around(number) : wgpu::TimestampWrites{};
      const wgpu::ComputePassDescriptor timed{nullptr, {}, &times};
      pass = api.CommandEncoderBeginComputePass(encoder, profile_ != nullptr ? &timed : nullptr);
      bound = nullptr;
    }
    const bool same = before != nullptr && before->signature == dispatch.signature &&
                      before->storage == dispatch.storage;
    if (!same) {
      const Result<wgpu::BindGroup> made =
          gpu_->bind_group(dispatch.signature, uniforms, dispatch.storage);
      if (!made.ok()) {
        end();
        return made.error();
      }
      group = *made;
    }
    before = &dispatch;
    if (dispatch.pipeline != bound) api.ComputePassEncoderSetPipeline(pass, dispatch.pipeline);
    bound = dispatch.pipeline;
    const uint32_t offset = number++ * static_cast<uint32_t>(kUniformBlock);
    api.ComputePassEncoderSetBindGroup(pass, 0, group, 1, &offset);
    api.ComputePassEncoderDispatchWorkgroups(pass, dispatch.groups[0], dispatch.groups[1],
                                             dispatch.groups[2]);
  }
  end();
  copy_before(dispatches_.size());
  return {};
}

size_t Frame::most_dispatches() const {
  return profile_ != nullptr ? size_t{Profile::kMostDispatches} : kMaxDispatches;
}

// Keeps the pipelines used last.
void Frame::evict() {
  auto oldest =
      std::min_element(pipelines_.begin(), pipelines_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  gpu_->api().ComputePipelineRelease(oldest->second.pipeline);
  pipelines_.erase(oldest);
}

// ---- Call ----

Call& Call::add(Operand operand) {
  if (operand_count_ == kMaxOperands) {
    status_ = make_error(Code::internal, cat(kernel_.name, ": too many operands"));
    return *this;
  }
  if (bound(operand) && operand.place.buffer == nullptr) {
    status_ = make_error(Code::internal,
                         cat(kernel_.name, ": ", operand.name, " is not in the device's memory"));
  }
  operands_[operand_count_++] = operand;
  return *this;
}

Call& Call::tensor(std::string_view name, const Tensor& t, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  if (t.empty()) {
    operand.view = View::absent;
    return add(operand);
  }
  operand.view = t.dtype == DType::i32 ? View::i32 : View::f32;
  operand.place = frame_->memory_->find(t.data);
  operand.stride = t.row_stride;
  if (t.dtype != DType::f32 && t.dtype != DType::i32) {
    status_ = unsupported(cat(kernel_.name, ": no kernel for ", name, " of ", dtype_name(t.dtype)));
  }
  return add(operand);
}

Call& Call::ids(std::string_view name, const Tensor& t, Access access) {
  if (!t.empty()) return tensor(name, t, access);
  Operand operand;
  operand.name = name;
  operand.view = View::absent_ids;
  return add(operand);
}

Call& Call::words(std::string_view name, const void* begin, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.view = begin == nullptr ? View::absent : View::words;
  if (begin != nullptr) {
    operand.place = frame_->memory_->find(static_cast<const std::byte*>(begin));
  }
  return add(operand);
}

Call& Call::words(std::string_view name, const Place& place, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.view = View::words;
  operand.place = place;
  return add(operand);
}

Call& Call::floats(std::string_view name, const float* begin, Access access) {
  return floats(name, frame_->memory_->find(reinterpret_cast<const std::byte*>(begin)), access);
}

Call& Call::floats(std::string_view name, const Place& place, Access access) {
  Operand operand;
  operand.name = name;
  operand.access = access;
  operand.place = place;
  return add(operand);
}

Call& Call::quads(std::string_view name, const void* begin) {
  Operand operand;
  operand.name = name;
  operand.view = View::quads;
  operand.place = frame_->memory_->find(static_cast<const std::byte*>(begin));
  return add(operand);
}

Call& Call::add(Value value) {
  if (value_count_ == kMaxValues) {
    status_ = make_error(Code::internal, cat(kernel_.name, ": too many values"));
    return *this;
  }
  values_[value_count_++] = value;
  return *this;
}

Call& Call::value(std::string_view name, int64_t v) {
  if (v < INT32_MIN || v > UINT32_MAX) {
    status_ = unsupported(cat(kernel_.name, ": ", name, " = ", v, " does not fit 32 bits"));
  }
  return add(Value{name, false, static_cast<uint32_t>(v)});
}

Call& Call::value(std::string_view name, float v) {
  Value value{name, true, 0};
  std::memcpy(&value.bits, &v, sizeof(v));
  return add(value);
}

Call& Call::constant(std::string_view name, int64_t v) {
  if (constant_count_ == kMaxConstants) {
    status_ = make_error(Code::internal, cat(kernel_.name, ": too many constants"));
    return *this;
  }
  constants_[constant_count_++] = {name, v};
  return *this;
}

Call& Call::text(std::string_view wgsl) {
  if (text_count_ == kMaxTexts) {
    status_ = make_error(Code::internal, cat(kernel_.name, ": too many texts"));
    return *this;
  }
  texts_[text_count_++] = wgsl;
  return *this;
}

Call& Call::lanes(int n) {
  lanes_ = n;
  return *this;
}

Status Call::items(int64_t n) {
  if (n <= 0) return status_;
  const int64_t groups = ceil_div(n, lanes_);
  const int64_t width = std::min(groups, frame_->adapter().max_workgroups);
  value("items", n);
  value("width", width);
  return run("items", width, ceil_div(groups, width), 1);
}

Status Call::spread(int64_t n) {
  if (n <= 0) return status_;
  // Sixteen reads that wait together copy at 89 % of the memory's rate on an H200, four at 63 %;
  // where the values are too few to fill the device so, one each.
  const bool many = n > int64_t{1} << 20;
  const int64_t each = many ? 16 : 1;
  lanes(many ? 128 : n > 1 << 16 ? 256 : 64).constant("each", each);
  const int64_t groups = ceil_div(n, each * lanes_);
  const int64_t width = std::min(groups, frame_->adapter().max_workgroups);
  value("items", n);
  value("width", width);
  return run("spread", width, ceil_div(groups, width), 1);
}

Status Call::rows(int64_t n) {
  if (n <= 0) return status_;
  const int64_t width = std::min(n, frame_->adapter().max_workgroups);
  value("items", n);
  value("width", width);
  return run("rows", width, ceil_div(n, width), 1);
}

Status Call::groups(int64_t x, int64_t y, int64_t z) {
  if (x <= 0 || y <= 0 || z <= 0) return status_;
  return run("", x, y, z);
}

// Every buffer is bound once: WebGPU allows no second binding of what is written. Only quads have a
// binding of their own, and only where nothing writes their buffer.
void Call::bind(Frame::Dispatch& dispatch) {
  const auto buffer_of = [&](int binding) {
    return dispatch.storage[static_cast<size_t>(binding)].buffer;
  };
  for (int i = 0; i < operand_count_; ++i) {
    Operand& operand = operands_[i];
    if (!bound(operand)) continue;
    operand.alone = operand.view == View::quads;
    for (int j = 0; operand.alone && j < operand_count_; ++j) {
      const Operand& other = operands_[j];
      operand.alone = other.access == Access::read || !bound(other) ||
                      other.place.buffer != operand.place.buffer;
    }
    if (operand.alone) continue;
    int binding = 0;
    while (binding < signature_.count && buffer_of(binding) != operand.place.buffer) ++binding;
    if (binding == signature_.count) {
      if (binding == Signature::kMax) {
        status_ = make_error(Code::internal, cat(kernel_.name, ": too many buffers"));
        return;
      }
      ++signature_.count;
      dispatch.storage[static_cast<size_t>(binding)] = {
          operand.place.buffer, 0, static_cast<uint64_t>(operand.place.buffer_bytes)};
    }
    if (operand.access != Access::read) signature_.writable |= 1U << binding;
    operand.binding = binding;
  }
  for (int i = 0; i < operand_count_; ++i) {
    Operand& operand = operands_[i];
    if (!operand.alone || !bound(operand)) continue;
    if (signature_.count == Signature::kMax) {
      operand.alone = false;
      status_ = make_error(Code::internal, cat(kernel_.name, ": too many buffers"));
      return;
    }
    operand.binding = signature_.count;
    dispatch.storage[static_cast<size_t>(signature_.count++)] = {
        operand.place.buffer, 0, static_cast<uint64_t>(operand.place.buffer_bytes)};
  }
  dispatch.signature = signature_;
}

Frame::Key Call::key(std::string_view form) const {
  const auto address = [](std::string_view text) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(text.data()));
  };
  Frame::Key key;
  key.add(address(kernel_.text));
  key.add((uint64_t{form.size()} << 56) | (uint64_t{signature_.writable} << 24) |
          (static_cast<uint64_t>(signature_.count) << 16) | static_cast<uint64_t>(lanes_));
  for (int i = 0; i < text_count_; ++i) key.add(address(texts_[i]));
  for (int i = 0; i < constant_count_; ++i) key.add(static_cast<uint64_t>(constants_[i].second));
  uint64_t word = 0;
  for (int i = 0; i < operand_count_; ++i) {
    const Operand& o = operands_[i];
    word = (word << 8) | static_cast<uint64_t>((static_cast<int>(o.view) << 5) | (o.binding << 1) |
                                               static_cast<int>(o.alone));
    if (i % 8 == 7) {
      key.add(word);
      word = 0;
    }
  }
  key.add(word);
  return key;
}

std::string Call::wgsl(std::string_view form) const {
  std::string out = "struct Params {\n";
  for (int i = 0; i < operand_count_; ++i) {
    if (!bound(operands_[i])) continue;
    out += cat("  ", operands_[i].name, "_o: u32, ", operands_[i].name, "_s: u32,\n");
  }
  for (int i = 0; i < value_count_; ++i) {
    out += cat("  ", values_[i].name, values_[i].real ? ": f32,\n" : ": u32,\n");
  }
  out += "  end: u32,\n}\n@group(0) @binding(0) var<uniform> p: Params;\n";
  for (int b = 0; b < signature_.count; ++b) {
    const bool alone = std::any_of(operands_, operands_ + operand_count_, [&](const Operand& o) {
      return o.alone && o.binding == b && bound(o);
    });
    const bool writable = ((signature_.writable >> b) & 1) != 0;
    out += cat("@group(0) @binding(", b + 1, ") var<storage, ", writable ? "read_write" : "read",
               "> b", b, ": array<", alone ? "vec4<u32>" : "u32", ">;\n");
  }
  for (int i = 0; i < constant_count_; ++i) {
    out += cat("const ", constants_[i].first, ": u32 = ", constants_[i].second, "u;\n");
  }
  out += cat("const lanes: u32 = ", lanes_, "u;\n");
  for (int i = 0; i < operand_count_; ++i) {
    const Operand& o = operands_[i];
    const std::string at = cat("b", o.binding, "[p.", o.name, "_o + i]");
    const bool written = o.access != Access::read;
    out += cat("const has_", o.name, ": bool = ", bound(o) ? "true" : "false", ";\n");
    switch (o.view) {
      case View::absent:
        out += cat("fn ", o.name, "_at(i: u32) -> f32 { return 0.0; }\n");
        out += cat("fn ", o.name, "_set(i: u32, v: f32) {}\n");
        out += cat("fn ", o.name, "_word(i: u32) -> u32 { return 0u; }\n");
        out += cat("fn ", o.name, "_put(i: u32, v: u32) {}\n");
        break;
      case View::absent_ids:
        out += cat("fn ", o.name, "_at(i: u32) -> i32 { return 0; }\n");
        out += cat("fn ", o.name, "_set(i: u32, v: i32) {}\n");
        break;
      case View::f32:
      case View::i32: {
        const std::string_view type = o.view == View::f32 ? "f32" : "i32";
        out += cat("fn ", o.name, "_at(i: u32) -> ", type, " { return bitcast<", type, ">(", at,
                   "); }\n");
        if (written) {
          out +=
              cat("fn ", o.name, "_set(i: u32, v: ", type, ") { ", at, " = bitcast<u32>(v); }\n");
        }
        break;
      }
      case View::words:
        out += cat("fn ", o.name, "_word(i: u32) -> u32 { return ", at, "; }\n");
        if (written) out += cat("fn ", o.name, "_put(i: u32, v: u32) { ", at, " = v; }\n");
        break;
      case View::quads:
        out += cat("fn ", o.name, "_quad(i: u32) -> vec4<u32> { ");
        if (o.alone) {
          out += cat("return b", o.binding, "[p.", o.name, "_o / 4u + i]; }\n");
        } else {
          out +=
              cat("let j = p.", o.name, "_o + 4u * i; return vec4<u32>(b", o.binding, "[j], b",
                  o.binding, "[j + 1u], b", o.binding, "[j + 2u], b", o.binding, "[j + 3u]); }\n");
        }
        out += cat("fn ", o.name, "_word(i: u32) -> u32 { return ", o.name,
                   "_quad(i / 4u)[i % 4u]; }\n");
        break;
    }
  }
  std::string body;
  for (int i = 0; i < text_count_; ++i) body += texts_[i];
  body += kernel_.text;
  if (form == "items") {
    body +=
        "\n@compute @workgroup_size(lanes)\nfn main(@builtin(workgroup_id) group: vec3<u32>, "
        "@builtin(local_invocation_index) lane: u32) {\n"
        "  let i = (group.y * p.width + group.x) * lanes + lane;\n  if (i < p.items) { run(i); "
        "}\n}\n";
  } else if (form == "spread") {
    body +=
        "\nfn spot(i: u32, j: u32) -> u32 { return min(i + j * lanes, p.items - 1u); }\n"
        "fn here(i: u32, j: u32) -> bool { return i + j * lanes < p.items; }\n"
        "@compute @workgroup_size(lanes)\nfn main(@builtin(workgroup_id) group: vec3<u32>, "
        "@builtin(local_invocation_index) lane: u32) {\n"
        "  let i = (group.y * p.width + group.x) * lanes * each + lane;\n"
        "  if (i < p.items) { run(i); }\n}\n";
  } else if (form == "rows") {
    body +=
        "\n@compute @workgroup_size(lanes)\nfn main(@builtin(workgroup_id) group: vec3<u32>, "
        "@builtin(local_invocation_index) lane: u32) {\n"
        "  let row = group.y * p.width + group.x;\n  if (row < p.items) { run(row, lane); }\n}\n";
  }
  return out + library_for(body) + body;
}

Status Call::run(std::string_view form, int64_t x, int64_t y, int64_t z) {
  Frame::Dispatch dispatch;
  if (status_.ok()) bind(dispatch);
  LOOM_TRY(std::move(status_));
  const int64_t limit = frame_->adapter().max_workgroups;
  if (x > limit || y > limit || z > limit) {
    return unsupported(cat(kernel_.name, ": ", x, " x ", y, " x ", z,
                           " workgroups, the device has ", limit,
                           " per dimension; use smaller batches, or the CPU"));
  }
  const Frame::Key known = key(form);
  Frame::Pipeline& pipeline = frame_->pipelines_[known];
  if (pipeline.pipeline == nullptr) {
    Result<wgpu::ComputePipeline> made =
        frame_->gpu_->compile(std::string(kernel_.name), wgsl(form), signature_);
    if (!made.ok()) {
      frame_->pipelines_.erase(known);
      return made.error();
    }
    pipeline.pipeline = made.value();
    ++frame_->counts_->pipelines;
  }
  pipeline.used = ++frame_->tick_;
  dispatch.name = kernel_.name;
  dispatch.pipeline = pipeline.pipeline;
  dispatch.groups[0] = static_cast<uint32_t>(x);
  dispatch.groups[1] = static_cast<uint32_t>(y);
  dispatch.groups[2] = static_cast<uint32_t>(z);
  frame_->dispatches_.push_back(dispatch);

  const size_t begin = frame_->uniforms_.size();
  frame_->uniforms_.resize(begin + kUniformBlock);
  uint32_t words[kUniformBlock / 4] = {};
  int count = 0;
  for (int i = 0; i < operand_count_; ++i) {
    if (!bound(operands_[i])) continue;
    words[count++] = static_cast<uint32_t>(operands_[i].place.offset / 4);
    words[count++] = static_cast<uint32_t>(operands_[i].stride);
  }
  for (int i = 0; i < value_count_; ++i) words[count++] = values_[i].bits;
  std::memcpy(frame_->uniforms_.data() + begin, words, sizeof(words));
  if (frame_->dispatches_.size() >= frame_->most_dispatches()) {
    LOOM_TRY(frame_->flush());
  }
  if (frame_->pipelines_.size() > kMaxPipelines && frame_->dispatches_.empty()) frame_->evict();
  return {};
}

}  // namespace loom::webgpu
