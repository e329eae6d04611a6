#include "backend/webgpu/runtime/gpu.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#if LOOM_THREADS
#include <chrono>
#include <thread>
#endif

#include "backend/webgpu/runtime/answers.hpp"
#include "backend/webgpu/runtime/library.hpp"
#include "backend/webgpu/runtime/staging.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

std::string_view backend_name(uint32_t type) {
  static constexpr std::string_view kNames[] = {"?",     "null",   "WebGPU", "D3D11",    "D3D12",
                                                "Metal", "Vulkan", "OpenGL", "OpenGL ES"};
  return type < std::size(kNames) ? kNames[type] : kNames[0];
}

// Pauses between polls. Short waits are those of a token; long waits may sleep.
void rest([[maybe_unused]] int64_t times) {
#if LOOM_THREADS
  if (times > 2000) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  } else if (times > 100) {
    std::this_thread::yield();
  }
#endif
}

constexpr std::string_view kNoAdapter =
    "no GPU adapter; install a Vulkan driver (in Debian: mesa-vulkan-drivers), or use the CPU";

// The minimum that the kernels need. Every WebGPU adapter has more.
constexpr uint32_t kMinInvocations = 256;
constexpr uint32_t kMinWorkgroupStorage = 16384;
constexpr uint32_t kMinStorageBuffers = 8;

}  // namespace

std::string one_line(const std::string& message) {
  std::string line;
  for (const char c : message) {
    const bool gap = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!gap) line += c;
    if (gap && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line.empty() ? "no message" : printable(line, 300);
}

Error error_of_fork(const std::string& name) {
  return make_error(Code::unsupported,
                    cat(name,
                        ": the process that opened it has forked this one; use the CPU here, "
                        "or start the process anew ('spawn' in Python)"));
}

Result<std::unique_ptr<Gpu>> Gpu::open(const OpenOptions& options) {
  static const ForkWatch first_opened;  // a fork breaks the shared state too
  if (first_opened.forked()) return error_of_fork("GPU");
  std::string library;
  LOOM_ASSIGN(wgpu::Api api, wgpu::open_library(options.library, &library));
  std::unique_ptr<Gpu> gpu(new Gpu(api));
  LOOM_TRY(gpu->request_adapter(options));
  LOOM_TRY(gpu->read_adapter(options, library));
  LOOM_TRY(gpu->request_device(options));
  return gpu;
}

Gpu::Gpu(wgpu::Api api) : api_(api) {}

void Gpu::later(std::function<Status()> job) {
  submissions_->later([this, job = std::move(job)] {
    Status status = job();
    if (status.ok()) return;
    if (late_.ok()) late_ = std::move(status);
    troubled_ = true;
  });
}

Gpu::~Gpu() {
  if (forked()) {
    static_cast<void>(submissions_.release());
    return;
  }
  drain();
  drop_bind_groups();
  for (const auto& [signature, layouts] : layouts_) {
    api_.PipelineLayoutRelease(layouts.pipeline);
    api_.BindGroupLayoutRelease(layouts.bindings);
  }
  for (const auto& staging : stagings_) destroy(staging->buffer);
  destroy(fence_);
  if (queue_ != nullptr) api_.QueueRelease(queue_);
  if (device_ != nullptr) {
    api_.DeviceDestroy(device_);
    api_.DeviceRelease(device_);
  }
  if (adapter_ != nullptr) api_.AdapterRelease(adapter_);
  if (instance_ != nullptr) api_.InstanceRelease(instance_);
}

Status Gpu::request_adapter(const OpenOptions&) {
  instance_ = api_.CreateInstance(nullptr);
  if (instance_ == nullptr) {
    return make_error(Code::internal, "the WebGPU library makes no instance");
  }
  wgpu::RequestAdapterOptions adapter_options;
  Answer<wgpu::Adapter> answer;
  api_.InstanceRequestAdapter(instance_, &adapter_options,
                              callback(&Answer<wgpu::Adapter>::receive, &answer, nullptr));
  LOOM_TRY(poll_until(answer.done));
  if (answer.value == nullptr) {
    return unsupported(cat(kNoAdapter, " (", one_line(answer.message), ")"));
  }
  adapter_ = answer.value;
  return {};
}

Status Gpu::read_adapter(const OpenOptions& options, const std::string& library) {
  wgpu::AdapterInfo info;
  api_.AdapterGetInfo(adapter_, &info);
  report_.library = library;
  report_.flavour = api_.flavour.name;
  report_.name = printable(info.device.view(), 100);
  report_.vendor = printable(info.vendor.view(), 100);
  report_.architecture = printable(info.architecture.view(), 100);
  report_.driver = printable(info.description.view(), 100);
  report_.backend = backend_name(info.backend);
  report_.software = info.type == wgpu::kAdapterCpu;
  // Dawn offers a device that computes nothing if there is no other.
  if (info.backend == wgpu::kBackendNull) {
    api_.AdapterInfoFreeMembers(info);
    return unsupported(std::string(kNoAdapter));
  }
  const auto has = [&](uint32_t feature) {
    return options.features && api_.AdapterHasFeature(adapter_, feature) != 0;
  };
  report_.f16 = has(api_.flavour.shader_f16);
  report_.subgroups = has(api_.flavour.subgroups);
  report_.timestamps = has(api_.flavour.timestamp_query);
  report_.subgroup_min = info.subgroup_min;
  report_.subgroup_max = info.subgroup_max;
  api_.AdapterInfoFreeMembers(info);

  if (api_.AdapterGetLimits(adapter_, &limits_) != wgpu::kStatusSuccess) {
    return make_error(Code::internal, cat(report_.name, ": the adapter tells no limits"));
  }
  // lavapipe recompiles a kernel for each value of the immediates.
  if ((!report_.software || options.slow_features) && api_.flavour.immediates != 0 &&
      has(api_.flavour.immediates) && api_.ComputePassEncoderSetImmediates != nullptr) {
    report_.immediates = std::min<int64_t>(limits_.max_immediate, kUniformBlock);
  }
  report_.max_buffer = static_cast<int64_t>(std::min<uint64_t>(limits_.max_buffer, INT64_MAX));
  report_.max_binding =
      static_cast<int64_t>(std::min<uint64_t>(limits_.max_storage_binding, INT64_MAX));
  report_.max_storage_buffers = limits_.max_storage_buffers;
  report_.max_workgroup_memory = limits_.max_workgroup_storage;
  report_.max_workgroup_size = limits_.max_workgroup_invocations;
  report_.max_workgroups = limits_.max_workgroups;
  if (limits_.max_workgroup_invocations < kMinInvocations ||
      limits_.max_workgroup_storage < kMinWorkgroupStorage ||
      limits_.max_storage_buffers < kMinStorageBuffers) {
    return unsupported(cat(report_.name, ": the adapter has ", limits_.max_workgroup_invocations,
                           " invocations, ", limits_.max_workgroup_storage,
                           " bytes of workgroup memory and ", limits_.max_storage_buffers,
                           " storage buffers, needed are ", kMinInvocations, ", ",
                           kMinWorkgroupStorage, " and ", kMinStorageBuffers, "; use the CPU"));
  }
  return {};
}

Status Gpu::request_device(const OpenOptions& options) {
  std::vector<uint32_t> features;
  if (report_.f16) features.push_back(api_.flavour.shader_f16);
  if (report_.subgroups) features.push_back(api_.flavour.subgroups);
  if (report_.timestamps) features.push_back(api_.flavour.timestamp_query);
  if (report_.immediates > 0) features.push_back(api_.flavour.immediates);
  // The limits of the adapter. Bindings are addressed in 32-bit words.
  wgpu::Limits adapter_options = limits_;
  adapter_options.next = nullptr;
  adapter_options.max_immediate = static_cast<uint32_t>(report_.immediates);

  static constexpr const char* kOff[] = {"timestamp_quantization"};
  static constexpr const char* kFast[] = {"disable_robustness", "disable_workgroup_init"};
  wgpu::Toggles toggles;
  toggles.disabled = kOff;
  toggles.disabled_count = std::size(kOff);
  toggles.enabled = kFast;
  toggles.enabled_count = options.robust ? 0 : std::size(kFast);

  const wgpu::DeviceLostCallback lost = [](const wgpu::Device*, uint32_t reason,
                                           wgpu::StringView message, void* user, void*) {
    if (reason == wgpu::kLostCancelled) return;
    auto* gpu = static_cast<Gpu*>(user);
    gpu->failure_.lost = true;
    gpu->failure_.message = one_line(std::string(message.view()));
    gpu->troubled_ = true;
  };
  const wgpu::UncapturedErrorCallback error = [](const wgpu::Device*, uint32_t type,
                                                 wgpu::StringView message, void* user, void*) {
    auto* gpu = static_cast<Gpu*>(user);
    if (gpu->failure_.type == 0) {
      gpu->failure_.type = type;
      gpu->failure_.message = one_line(std::string(message.view()));
      gpu->troubled_ = true;
    }
  };
  wgpu::DeviceDescriptor descriptor;
  if (api_.flavour.dawn) descriptor.next = &toggles.chain;
  descriptor.feature_count = features.size();
  descriptor.features = features.data();
  descriptor.limits = &adapter_options;
  descriptor.lost = callback(lost, this, nullptr, wgpu::kSpontaneous);
  descriptor.error.call = reinterpret_cast<void*>(error);
  descriptor.error.user1 = this;

  Answer<wgpu::Device> answer;
  api_.AdapterRequestDevice(adapter_, &descriptor,
                            callback(&Answer<wgpu::Device>::receive, &answer, nullptr));
  LOOM_TRY(poll_until(answer.done));
  if (answer.value == nullptr) {
    return unsupported(
        cat(report_.name, ": the adapter gives no device: ", one_line(answer.message)));
  }
  device_ = answer.value;
  queue_ = api_.DeviceGetQueue(device_);
  return {};
}

void Gpu::poll() {
  if (device_ != nullptr && api_.DevicePoll != nullptr) api_.DevicePoll(device_, 0, nullptr);
  api_.InstanceProcessEvents(instance_);
}

Status Gpu::poll_until(const bool& done) {
  for (int64_t times = 0; !done; ++times) {
    if (api_.InstanceWaitForEvent != nullptr) {
      api_.InstanceWaitForEvent(instance_);
    } else {
      poll();
    }
    if (done) break;
    if (failure_.lost) return check();
    rest(times);
  }
  return {};
}

Status Gpu::check() {
  if (forked()) {
    return error_of_fork(report_.name);
  }
  drain();
  troubled_ = failure_.lost;
  if (failure_.lost) {
    return make_error(Code::internal, cat(report_.name, ": the GPU was lost (", failure_.message,
                                          "); the model is intact, open it again or use the CPU"));
  }
  if (!late_.ok()) return std::exchange(late_, Status());
  if (failure_.type == 0) return {};
  const Failure failure = std::move(failure_);
  failure_ = {};
  const bool memory = failure.type == wgpu::kErrorOutOfMemory;
  return make_error(
      memory ? Code::out_of_memory : Code::internal,
      cat(report_.name, memory ? ": out of GPU memory: " : ": GPU error: ", failure.message));
}

void Gpu::lose() {
  drain();
  troubled_ = true;
  api_.DeviceDestroy(device_);
  failure_.lost = true;
  failure_.message = "destroyed";
}

void Gpu::push_scopes() {
  // wgpu-native has no scope for internal errors; they arrive as uncaptured errors.
  if (api_.flavour.dawn) api_.DevicePushErrorScope(device_, wgpu::kFilterInternal);
  api_.DevicePushErrorScope(device_, wgpu::kFilterOutOfMemory);
  api_.DevicePushErrorScope(device_, wgpu::kFilterValidation);
}

Status Gpu::pop_scopes(const std::string& what) {
  Status status;
  for (int scopes = api_.flavour.dawn ? 3 : 2; scopes > 0; --scopes) {
    Done done;
    api_.DevicePopErrorScope(device_, callback(&Done::receive_error, &done, nullptr));
    LOOM_TRY(poll_until(done.done));
    if (done.type > wgpu::kErrorNone && status.ok()) {
      status =
          make_error(done.type == wgpu::kErrorOutOfMemory ? Code::out_of_memory : Code::internal,
                     cat(what, ": ", one_line(done.message)));
    }
  }
  return status;
}

Result<wgpu::Buffer> Gpu::create_buffer(int64_t bytes, wgpu::Flags usage) {
  LOOM_TRY(check());
  wgpu::BufferDescriptor descriptor;
  descriptor.usage = usage;
  descriptor.size = static_cast<uint64_t>(round_up(std::max<int64_t>(bytes, 16), 16));
  push_scopes();
  const wgpu::Buffer buffer = api_.DeviceCreateBuffer(device_, &descriptor);
  Status status = pop_scopes(cat(report_.name, ": no ", bytes, " bytes of GPU memory"));
  if (!status.ok()) {
    if (buffer != nullptr) api_.BufferRelease(buffer);
    return status.error();
  }
  bytes_ += static_cast<int64_t>(descriptor.size);
  return buffer;
}

void Gpu::destroy(wgpu::Buffer buffer) {
  if (buffer == nullptr || forked()) return;
  drain();
  drop_bind_groups();
  bytes_ -= static_cast<int64_t>(api_.BufferGetSize(buffer));
  api_.BufferDestroy(buffer);
  api_.BufferRelease(buffer);
}

void Gpu::drop_bind_groups() {
  for (const auto& [key, group] : groups_) api_.BindGroupRelease(group);
  groups_.clear();
}

Status Gpu::write(wgpu::Buffer buffer, int64_t offset, const void* data, int64_t bytes) {
  // In pieces: libraries first copy the data into memory of their own.
  constexpr int64_t kPiece = 16 << 20;
  LOOM_TRY(check());
  const auto* from = static_cast<const std::byte*>(data);
  for (int64_t done = 0; done < bytes; done += kPiece) {
    const int64_t piece = std::min(kPiece, bytes - done);
    const int64_t whole = piece & ~int64_t{3};
    api_.QueueWriteBuffer(queue_, buffer, static_cast<uint64_t>(offset + done), from + done,
                          static_cast<size_t>(whole));
    if (whole < piece) {
      uint32_t last = 0;
      std::memcpy(&last, from + done + whole, static_cast<size_t>(piece - whole));
      api_.QueueWriteBuffer(queue_, buffer, static_cast<uint64_t>(offset + done + whole), &last, 4);
    }
    if (bytes > kPiece) LOOM_TRY(wait());
  }
  return check();
}

Status Gpu::clear(wgpu::Buffer buffer, int64_t offset, int64_t bytes) {
  LOOM_TRY(check());
  const wgpu::CommandEncoder encoder = api_.DeviceCreateCommandEncoder(device_, nullptr);
  api_.CommandEncoderClearBuffer(encoder, buffer, static_cast<uint64_t>(offset),
                                 static_cast<uint64_t>(bytes));
  return submit(encoder);
}

wgpu::BindGroupLayout Gpu::layout_of(const Signature& signature) {
  Layouts& layouts = layouts_[signature];
  if (layouts.bindings != nullptr) return layouts.bindings;
  wgpu::BindGroupLayoutEntry entries[1 + Signature::kMax];
  entries[0].buffer.type = wgpu::kBindUniform;
  entries[0].buffer.dynamic = 1;
  for (int i = 1; i <= signature.count; ++i) {
    entries[i].binding = static_cast<uint32_t>(i);
    const bool writable = ((signature.writable >> (i - 1)) & 1) != 0;
    entries[i].buffer.type = writable ? wgpu::kBindStorage : wgpu::kBindReadOnly;
  }
  wgpu::BindGroupLayoutDescriptor descriptor;
  descriptor.count = static_cast<size_t>(signature.count) + 1;
  descriptor.entries = entries;
  layouts.bindings = api_.DeviceCreateBindGroupLayout(device_, &descriptor);
  wgpu::PipelineLayoutDescriptor pipeline;
  pipeline.count = 1;
  pipeline.layouts = &layouts.bindings;
  pipeline.immediate_size = static_cast<uint32_t>(report_.immediates);
  layouts.pipeline = api_.DeviceCreatePipelineLayout(device_, &pipeline);
  return layouts.bindings;
}

Result<wgpu::ComputePipeline> Gpu::compile(const std::string& name, const std::string& wgsl,
                                           const Signature& signature) {
  LOOM_TRY(check());
  layout_of(signature);
  push_scopes();
  wgpu::ShaderSource source;
  source.code = wgpu::StringView(wgsl);
  wgpu::ShaderModuleDescriptor descriptor;
  descriptor.next = &source.chain;
  descriptor.label = wgpu::StringView(name);
  const wgpu::ShaderModule module = api_.DeviceCreateShaderModule(device_, &descriptor);
  wgpu::ComputePipelineDescriptor pipeline;
  pipeline.label = descriptor.label;
  pipeline.layout = layouts_[signature].pipeline;
  pipeline.compute.module = module;
  pipeline.compute.entry = wgpu::StringView("main");
  const wgpu::ComputePipeline made =
      module == nullptr ? nullptr : api_.DeviceCreateComputePipeline(device_, &pipeline);
  Status status = pop_scopes(cat("kernel ", name, " does not compile on ", report_.name));
  if (module != nullptr) api_.ShaderModuleRelease(module);
  LOOM_TRY(check());
  if (status.ok() && made == nullptr) {
    status =
        make_error(Code::internal, cat("kernel ", name, " does not compile on ", report_.name));
  }
  if (!status.ok()) return status.error();
  return made;
}

size_t Gpu::BoundHash::operator()(const Bound& bound) const {
  std::array<uint64_t, Signature::kMax + 2> words{};
  const auto count = static_cast<size_t>(bound.signature.count);
  const auto address = [](const Binding& b) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(b.buffer)) + b.offset;
  };
  for (size_t i = 0; i < count; ++i) words[i] = address(bound.storage[i]);
  words[count] = address(bound.uniforms);
  words[count + 1] = bound.signature.writable;
  return hash_words({words.data(), count + 2});
}

Result<wgpu::BindGroup> Gpu::bind_group(const Signature& signature, const Binding& uniforms,
                                        const std::array<Binding, Signature::kMax>& storage) {
  const Bound key{storage, uniforms, signature};
  if (const auto found = groups_.find(key); found != groups_.end()) return found->second;
  wgpu::BindGroupEntry entries[1 + Signature::kMax];
  for (int i = 0; i <= signature.count; ++i) {
    const Binding& binding = i == 0 ? uniforms : storage[static_cast<size_t>(i - 1)];
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].buffer = binding.buffer;
    entries[i].offset = binding.offset;
    entries[i].size = binding.size;
  }
  wgpu::BindGroupDescriptor descriptor;
  descriptor.layout = layout_of(signature);
  descriptor.count = static_cast<size_t>(signature.count) + 1;
  descriptor.entries = entries;
  const wgpu::BindGroup group = api_.DeviceCreateBindGroup(device_, &descriptor);
  LOOM_TRY(check());
  if (group == nullptr) {
    return make_error(Code::internal, cat(report_.name, ": no bind group"));
  }
  groups_.emplace(key, group);
  return group;
}

Status Gpu::submit(wgpu::CommandEncoder encoder) {
  const wgpu::CommandBuffer commands = api_.CommandEncoderFinish(encoder, nullptr);
  api_.CommandEncoderRelease(encoder);
  if (commands == nullptr) {
    LOOM_TRY(check());
    return make_error(Code::internal, cat(report_.name, ": the commands were refused"));
  }
  api_.QueueSubmit(queue_, 1, &commands);
  api_.CommandBufferRelease(commands);
  return check();
}

Status Gpu::wait() {
  // Waits by reading something: the callback for finished work has two forms, that of a mapping has
  // one.
  if (fence_ == nullptr) {
    LOOM_ASSIGN(fence_, create_buffer(16, wgpu::kCopySrc));
  }
  uint32_t word = 0;
  const Read one{fence_, 0, &word, sizeof(word)};
  return read({&one, 1});
}

}  // namespace loom::core::webgpu
