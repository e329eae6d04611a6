#include "backend/webgpu/wgsl/frame.hpp"

#include <algorithm>
#include <cstring>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

// Dispatches in one submission: enough for a token or an ordinary training step, few enough for
// drivers with a watchdog.
constexpr size_t kMaxDispatches = 8192;
constexpr size_t kMaxPipelines = 1024;
// Bytes of all tables of a submission.
constexpr int64_t kTables = int64_t{1} << 18;
// Bytes written between dispatches of a submission.
constexpr int64_t kStaging = int64_t{1} << 20;

}  // namespace

Frame::~Frame() {
  if (gpu_->forked()) return;
  gpu_->drain();
  for (const auto& [key, pipeline] : pipelines_) {
    gpu_->api().ComputePipelineRelease(pipeline.pipeline);
  }
  gpu_->destroy(temporary_);
  for (const Sent* sent : {&uniform_buffer_, &table_buffer_, &staging_buffer_}) {
    gpu_->destroy(sent->buffer);
  }
}

void Frame::drop() {
  fresh_.clear();
  open_.clear();
  open_uses_.clear();
  copies_.clear();
  reads_.clear();
  dispatches_.clear();
  uniforms_.clear();
  table_.clear();
  staged_.clear();
}

Result<BufferSlice> Frame::temporary(int64_t bytes) {
  if (bytes > temporary_bytes_) {
    LOOM_TRY(flush());
    LOOM_TRY(gpu_->wait());
    gpu_->destroy(temporary_);
    temporary_ = nullptr;
    temporary_bytes_ = 0;
    ++generation_;
    const int64_t capacity = round_up(bytes + bytes / 2, 4096);
    LOOM_ASSIGN(temporary_, gpu_->create_buffer(capacity, wgpu::kStorage));
    temporary_bytes_ = capacity;
  }
  return BufferSlice{temporary_, temporary_bytes_, 0, temporary_bytes_};
}

Result<BufferSlice> Frame::table(std::span<const uint32_t> words) {
  const auto bytes = static_cast<int64_t>(words.size()) * 4;
  if (bytes > kTables) return make_error(Code::internal, "a dispatch with too large a table");
  if (static_cast<int64_t>(table_.size()) * 4 + bytes > kTables) LOOM_TRY(flush());
  LOOM_TRY(reserve(table_buffer_, kTables, wgpu::kStorage));
  const auto offset = static_cast<int64_t>(table_.size()) * 4;
  table_.insert(table_.end(), words.begin(), words.end());
  return BufferSlice{table_buffer_.buffer, kTables, offset, bytes};
}

Status Frame::write(const BufferSlice& to, const void* data, int64_t bytes) {
  const auto staged = static_cast<int64_t>(staged_.size());
  LOOM_TRY(close_all());
  const bool empty = dispatches_.empty() && copies_.empty() && gpu_->drained();
  if (empty || staged + bytes > kStaging || bytes % 4 != 0 || to.offset % 4 != 0) {
    LOOM_TRY(flush());
    return gpu_->write(to.buffer, to.offset, data, bytes);
  }
  LOOM_TRY(reserve(staging_buffer_, kStaging, wgpu::kCopySrc));
  const auto* begin = static_cast<const std::byte*>(data);
  staged_.insert(staged_.end(), begin, begin + bytes);
  return copy(BufferSlice{staging_buffer_.buffer, kStaging, staged, bytes}, to, bytes);
}

Status Frame::reserve(Sent& to, int64_t bytes, wgpu::Flags usage) {
  if (to.bytes >= bytes) return {};
  gpu_->drain();
  ++generation_;
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

Status Frame::reserve_uniforms() {
  const auto bytes = static_cast<int64_t>(uniforms_.size());
  const int64_t capacity = round_up(std::max(bytes * 3 / 2, int64_t{1}), int64_t{1} << 16);
  if (uniform_buffer_.bytes >= bytes) return {};
  return reserve(uniform_buffer_, capacity, wgpu::kUniform);
}

Status Frame::send_all(const Batch& batch) {
  const auto bytes = [](const auto& list) {
    return static_cast<int64_t>(list.size() * sizeof(list[0]));
  };
  LOOM_TRY(send(uniform_buffer_, batch.uniforms.data(), bytes(batch.uniforms)));
  LOOM_TRY(send(table_buffer_, batch.table.data(), bytes(batch.table)));
  return send(staging_buffer_, batch.staged.data(), bytes(batch.staged));
}

// A joinable work waits for others to join it. A work that depends on it waits too.
Status Frame::add(Work& work) {
  if (work.shared >= 0 && !rows_alone_) {
    fresh_.push_back(work);
    return {};
  }
  LOOM_TRY(close_all());
  return dispatch({&work, 1});
}

Status Frame::add_dependencies(std::vector<Use> uses) {
  for (size_t i = 0; i < fresh_.size(); ++i) {
    Work& work = fresh_[i];
    const bool joins =
        i == 0 && fits_beside(open_, work, adapter()) && apart(open_uses_, uses) &&
        !(uses_temporary(work) && std::any_of(open_.begin(), open_.end(), [&](const Work& other) {
            return uses_temporary(other);
          }));
    if (!joins) LOOM_TRY(close());
    open_.push_back(work);
    open_uses_.insert(open_uses_.end(), uses.begin(), uses.end());
  }
  fresh_.clear();
  return {};
}

bool Frame::uses_temporary(const Work& work) const {
  const std::span<const Operand> all = work.all_operands();
  return std::any_of(all.begin(), all.end(),
                     [&](const Operand& o) { return o.bound() && o.slice.buffer == temporary_; });
}

Status Frame::close() {
  if (open_.empty()) return {};
  std::vector<Work> works;
  works.swap(open_);
  open_uses_.clear();
  return dispatch(works);
}

Status Frame::close_all() {
  LOOM_TRY(close());
  std::vector<Work> works;
  works.swap(fresh_);
  for (Work& work : works) LOOM_TRY(dispatch({&work, 1}));
  return {};
}

Status Frame::dispatch(std::span<Work> works) {
  Dispatch dispatch;
  fix_lanes(works);
  LOOM_TRY(webgpu::bind(works, dispatch.signature, dispatch.storage));
  const PipelineKey key = pipeline_key(works, dispatch.signature);
  Pipeline& pipeline = pipelines_[key];
  if (pipeline.pipeline == nullptr) {
    for (const Work& work : works) {
      pipeline.name += cat(pipeline.name.empty() ? "" : "+", work.kernel.name);
    }
    // wgpu-native has subgroups without the enable directive, and rejects it.
    const Dialect dialect{adapter().subgroup, gpu_->api().flavour.dawn, adapter().immediates};
    const std::string wgsl = pipeline_wgsl(works, dispatch.signature, dialect);
    Result<wgpu::ComputePipeline> made = gpu_->compile(pipeline.name, wgsl, dispatch.signature);
    if (!made.ok()) {
      pipelines_.erase(key);
      return made.error();
    }
    pipeline.pipeline = made.value();
    ++counts_->pipelines;
  }
  pipeline.used = ++tick_;
  dispatch.name = pipeline.name;
  const int64_t bytes = parameter_bytes(works);
  if (bytes <= adapter().immediates) dispatch.immediates = static_cast<size_t>(bytes);
  dispatch.pipeline = pipeline.pipeline;
  note_tables(works, dispatch);
  if (works.size() == 1) {
    std::copy_n(works[0].groups, 3, dispatch.groups);
  } else {
    dispatch.groups[0] = 0;
    for (const Work& work : works) dispatch.groups[0] += static_cast<uint32_t>(work.workgroups());
  }
  dispatches_.push_back(dispatch);
  uint32_t words[kUniformBlock / 4] = {};
  parameters(works, words);
  const size_t begin = uniforms_.size();
  uniforms_.resize(begin + kUniformBlock);
  std::memcpy(uniforms_.data() + begin, words, sizeof(words));
  return {};
}

void Frame::note_tables(std::span<const Work> works, Dispatch& dispatch) const {
  size_t word = 0;
  for (const Work& work : works) {
    const size_t begin = word;
    for (const Operand& o : work.all_operands()) {
      if (!o.bound()) continue;
      if (o.slice.buffer == table_buffer_.buffer) {
        dispatch.tables[dispatch.table_count++] = static_cast<uint8_t>(word);
      }
      word += 2;
    }
    word = begin + static_cast<size_t>(work.words()) + kPlaceWords;
  }
}

Status Frame::record() {
  LOOM_TRY(close_all());
  mark_ = {dispatches_.size(), copies_.size(), table_.size(), submissions_};
  return {};
}

std::unique_ptr<Frame::Recording> Frame::recorded() {
  const bool whole = submissions_ == mark_.submissions && copies_.size() == mark_.copies;
  if (!whole || !fresh_.empty()) return nullptr;
  auto recording = std::make_unique<Recording>();
  const auto from = [](const auto& list, size_t begin) {
    return std::decay_t<decltype(list)>(list.begin() + static_cast<ptrdiff_t>(begin), list.end());
  };
  recording->dispatches = from(dispatches_, mark_.dispatches);
  recording->uniforms = from(uniforms_, mark_.dispatches * kUniformBlock);
  recording->table = from(table_, mark_.table);
  recording->table_begin = mark_.table;
  recording->open = open_;
  recording->open_uses = open_uses_;
  return recording;
}

Status Frame::replay(const Recording& recording) {
  LOOM_TRY(close_all());
  const auto words = static_cast<int64_t>(table_.size() + recording.table.size());
  if (words * 4 > kTables || dispatches_.size() + recording.dispatches.size() >= max_dispatches()) {
    LOOM_TRY(submit(true));
  }
  // Tables are at other offsets than at recording time.
  const auto moved = static_cast<uint32_t>(table_.size() - recording.table_begin);
  const size_t begin = uniforms_.size();
  uniforms_.insert(uniforms_.end(), recording.uniforms.begin(), recording.uniforms.end());
  for (size_t i = 0; moved != 0 && i < recording.dispatches.size(); ++i) {
    const Dispatch& dispatch = recording.dispatches[i];
    for (size_t t = 0; t < dispatch.table_count; ++t) {
      std::byte* at = uniforms_.data() + begin + i * kUniformBlock + size_t{dispatch.tables[t]} * 4;
      uint32_t word = 0;
      std::memcpy(&word, at, 4);
      word += moved;
      std::memcpy(at, &word, 4);
    }
  }
  dispatches_.insert(dispatches_.end(), recording.dispatches.begin(), recording.dispatches.end());
  table_.insert(table_.end(), recording.table.begin(), recording.table.end());
  open_ = recording.open;
  open_uses_ = recording.open_uses;
  for (Work& work : open_) {
    for (Operand& o : work.operands) {
      if (o.slice.buffer == table_buffer_.buffer)
        o.slice.offset += int64_t{4} * static_cast<int32_t>(moved);
    }
  }
  return {};
}

Status Frame::copy(const BufferSlice& from, const BufferSlice& to, int64_t bytes) {
  LOOM_TRY(close_all());
  copies_.push_back({from, to, bytes, dispatches_.size()});
  return {};
}

Result<int64_t> Frame::read(std::span<const Gpu::Read> reads) {
  LOOM_TRY(close_all());
  std::vector<Gpu::StagedCopy> copies;
  LOOM_ASSIGN(const int64_t ticket, gpu_->stage(reads, copies));
  for (const Gpu::StagedCopy& c : copies) {
    const BufferSlice from{c.from, 0, c.from_offset, c.bytes}, to{c.to, 0, c.to_offset, c.bytes};
    copies_.push_back({from, to, c.bytes, dispatches_.size()});
  }
  reads_.push_back(ticket);
  return ticket;
}

// A work that could not be dispatched is dropped, together with all described work.
Status Frame::flush(bool later) {
  Status status = close_all();
  if (status.ok()) return submit(later);
  drop();
  return status;
}

Status Frame::submit(bool later) {
  if (dispatches_.empty() && copies_.empty()) return {};
  Status status = gpu_->glance();
  if (status.ok()) status = reserve_uniforms();
  if (!status.ok()) {
    drop();
    return status;
  }
  counts_->dispatches += static_cast<int64_t>(dispatches_.size());
  ++counts_->submits;
  ++submissions_;
  last_reads_ = reads_;
  auto batch = std::make_shared<Batch>();
  batch->dispatches.swap(dispatches_);
  batch->copies.swap(copies_);
  batch->reads.swap(reads_);
  batch->uniforms.swap(uniforms_);
  batch->table.swap(table_);
  batch->staged.swap(staged_);
  drop();
  // The next submission is often as long.
  dispatches_.reserve(batch->dispatches.size());
  uniforms_.reserve(batch->uniforms.size());
  if (later && profile_ == nullptr) {
    gpu_->later([this, batch] { return run(*batch); });
  } else {
    gpu_->drain();
    LOOM_TRY(run(*batch));
  }
  while (pipelines_.size() > kMaxPipelines) evict();
  return {};
}

Status Frame::run(const Batch& batch) {
  LOOM_TRY(gpu_->check());
  LOOM_TRY(send_all(batch));
  const wgpu::Api& api = gpu_->api();
  const wgpu::CommandEncoder encoder = api.DeviceCreateCommandEncoder(gpu_->device(), nullptr);
  const Status status = encode(encoder, batch);
  if (!status.ok()) {
    api.CommandEncoderRelease(encoder);
    return status;
  }
  std::vector<std::string_view> timed;
  if (profile_ != nullptr && !batch.dispatches.empty()) {
    for (const Dispatch& dispatch : batch.dispatches) timed.push_back(dispatch.name);
    profile_->resolve(encoder, static_cast<uint32_t>(timed.size()));
  }
  LOOM_TRY(gpu_->submit(encoder));
  for (const int64_t ticket : batch.reads) gpu_->begin_read(ticket);
  return timed.empty() ? Status{} : profile_->collect(timed);
}

// All dispatches in one pass, except for copies between them. While profiling, each has a pass of
// its own, with its times.
Status Frame::encode(wgpu::CommandEncoder encoder, const Batch& batch) {
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
    for (; next < batch.copies.size() && batch.copies[next].before <= number; ++next) {
      end();
      const Copy& copy = batch.copies[next];
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
  for (const Dispatch& dispatch : batch.dispatches) {
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
    uint32_t offset = number++ * static_cast<uint32_t>(kUniformBlock);
    if (dispatch.immediates > 0) {
      api.ComputePassEncoderSetImmediates(pass, 0, batch.uniforms.data() + offset,
                                          dispatch.immediates);
      offset = 0;
    }
    api.ComputePassEncoderSetBindGroup(pass, 0, group, 1, &offset);
    api.ComputePassEncoderDispatchWorkgroups(pass, dispatch.groups[0], dispatch.groups[1],
                                             dispatch.groups[2]);
  }
  end();
  copy_before(batch.dispatches.size());
  return {};
}

// Reserves some for waiting works and for those of one more command.
size_t Frame::max_dispatches() const {
  return (profile_ != nullptr ? size_t{Profile::kMaxProfiled} : kMaxDispatches) - 64;
}

Status Frame::flush_full() {
  return dispatches_.size() >= max_dispatches() ? flush(true) : Status{};
}

// Keeps the most recently used pipelines.
void Frame::evict() {
  auto oldest =
      std::min_element(pipelines_.begin(), pipelines_.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  ++generation_;
  gpu_->drain();
  gpu_->api().ComputePipelineRelease(oldest->second.pipeline);
  pipelines_.erase(oldest);
}

}  // namespace loom::core::webgpu
