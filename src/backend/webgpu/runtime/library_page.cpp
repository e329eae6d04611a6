// The WebGPU of a page: the table of wgpu.hpp over imports of the module "gpu", which
// bindings/typescript/src/gpu.ts provides (docs/decisions/0059-webgpu-in-a-page.md). Structs are
// flattened here, so that JavaScript sees numbers, lists of numbers and texts, and no layout. Sizes
// and offsets go as doubles, which JavaScript adds without BigInt.
#include <cstdlib>
#include <vector>

#include "backend/webgpu/runtime/library.hpp"
#include "base/text.hpp"

#define LOOM_PAGE(name) __attribute__((import_module("gpu"), import_name(name)))

namespace loom::core::wgpu {
namespace {

extern "C" {
// These suspend the module, so that callbacks of settled promises run. The first lets other events
// of the page run. The second returns after a callback was called, or at once if none is expected.
LOOM_PAGE("processEvents") void loom_page_process_events();
LOOM_PAGE("waitForEvent") void loom_page_wait_for_event();

LOOM_PAGE("requestAdapter") void loom_page_request_adapter(void* call, void* a, void* b);
LOOM_PAGE("limit") double loom_page_limit(Adapter, const char* name, size_t length);
LOOM_PAGE("adapterText") size_t loom_page_adapter_text(Adapter, uint32_t what, char* out, size_t);
LOOM_PAGE("adapterNumber") uint32_t loom_page_adapter_number(Adapter, uint32_t what);
LOOM_PAGE("hasFeature") Bool loom_page_has_feature(Adapter, uint32_t feature);
LOOM_PAGE("requestDevice")
void loom_page_request_device(Adapter, const uint32_t* features, size_t count,
                              void* const* callbacks);  // call, user1, user2 of three
LOOM_PAGE("deviceQueue") Queue loom_page_device_queue(Device);
LOOM_PAGE("createBuffer") Buffer loom_page_create_buffer(Device, double size, uint32_t usage);
LOOM_PAGE("createShaderModule")
ShaderModule loom_page_create_shader_module(Device, const char* code, size_t code_length,
                                            const char* label, size_t label_length);
LOOM_PAGE("createBindGroupLayout")
BindGroupLayout loom_page_create_bind_group_layout(Device, const uint32_t* entries, size_t count);
LOOM_PAGE("createPipelineLayout")
PipelineLayout loom_page_create_pipeline_layout(Device, const BindGroupLayout*, size_t count);
LOOM_PAGE("createComputePipeline")
ComputePipeline loom_page_create_compute_pipeline(Device, PipelineLayout, ShaderModule,
                                                  const char* entry, size_t entry_length,
                                                  const char* label, size_t label_length);
LOOM_PAGE("createBindGroup")
BindGroup loom_page_create_bind_group(Device, BindGroupLayout, const double* entries, size_t count);
LOOM_PAGE("createCommandEncoder") CommandEncoder loom_page_create_command_encoder(Device);
LOOM_PAGE("pushErrorScope") void loom_page_push_error_scope(Device, uint32_t filter);
LOOM_PAGE("popErrorScope") void loom_page_pop_error_scope(Device, void* call, void* a, void* b);
LOOM_PAGE("destroyDevice") void loom_page_destroy_device(Device);
LOOM_PAGE("submit") void loom_page_submit(Queue, const CommandBuffer*, size_t count);
LOOM_PAGE("writeBuffer")
void loom_page_write_buffer(Queue, Buffer, double offset, const void* data, size_t size);
LOOM_PAGE("beginComputePass") ComputePassEncoder loom_page_begin_compute_pass(CommandEncoder);
LOOM_PAGE("copyBuffer")
void loom_page_copy_buffer(CommandEncoder, Buffer from, double from_offset, Buffer to,
                           double to_offset, double size);
LOOM_PAGE("clearBuffer")
void loom_page_clear_buffer(CommandEncoder, Buffer, double offset, double size);
LOOM_PAGE("finish") CommandBuffer loom_page_finish(CommandEncoder);
LOOM_PAGE("setPipeline") void loom_page_set_pipeline(ComputePassEncoder, ComputePipeline);
LOOM_PAGE("setBindGroup")
void loom_page_set_bind_group(ComputePassEncoder, uint32_t index, BindGroup, size_t count,
                              const uint32_t* offsets);
LOOM_PAGE("dispatch") void loom_page_dispatch(ComputePassEncoder, uint32_t, uint32_t, uint32_t);
LOOM_PAGE("endPass") void loom_page_end_pass(ComputePassEncoder);
LOOM_PAGE("mapBuffer")
void loom_page_map_buffer(Buffer, double offset, double size, void* call, void* a, void* b);
LOOM_PAGE("copyMapped") Bool loom_page_copy_mapped(Buffer, size_t offset, size_t size, void* to);
LOOM_PAGE("unmap") void* loom_page_unmap(Buffer);  // the last target of copyMapped, or null
LOOM_PAGE("bufferSize") double loom_page_buffer_size(Buffer);
LOOM_PAGE("destroyBuffer") void loom_page_destroy_buffer(Buffer);
LOOM_PAGE("release") void loom_page_release(void* handle);
}

// Standard numbers of features. Page timers are rounded to a tenth of a millisecond, which is too
// coarse for a kernel, so timestamps are not requested.
constexpr Flavour kPage{"the browser", 0, 11, 18, false};

// ---- the adapter and its device

enum class AdapterText : uint32_t { vendor, architecture, device, description };
enum class AdapterNumber : uint32_t { software, subgroup_min, subgroup_max };
constexpr uint32_t kBackendWebGpu = 2, kAdapterUnknown = 4;

StringView text_of(Adapter adapter, AdapterText what) {
  static char texts[4][128];
  char* text = texts[static_cast<size_t>(what)];
  const size_t length =
      loom_page_adapter_text(adapter, static_cast<uint32_t>(what), text, sizeof(texts[0]));
  return StringView(std::string_view(text, length));
}
uint32_t number_of(Adapter adapter, AdapterNumber what) {
  return loom_page_adapter_number(adapter, static_cast<uint32_t>(what));
}

uint32_t adapter_info(Adapter adapter, AdapterInfo* info) {
  info->vendor = text_of(adapter, AdapterText::vendor);
  info->architecture = text_of(adapter, AdapterText::architecture);
  info->device = text_of(adapter, AdapterText::device);
  info->description = text_of(adapter, AdapterText::description);
  info->backend = kBackendWebGpu;
  info->type = number_of(adapter, AdapterNumber::software) != 0 ? kAdapterCpu : kAdapterUnknown;
  info->subgroup_min = number_of(adapter, AdapterNumber::subgroup_min);
  info->subgroup_max = number_of(adapter, AdapterNumber::subgroup_max);
  return kStatusSuccess;
}

// The limits that this backend requests; a device gets all limits of its adapter.
uint32_t adapter_limits(Adapter adapter, Limits* limits) {
  const auto limit = [&](std::string_view name) {
    return loom_page_limit(adapter, name.data(), name.size());
  };
  const auto word = [&](std::string_view name) { return static_cast<uint32_t>(limit(name)); };
  limits->max_storage_buffers = word("maxStorageBuffersPerShaderStage");
  limits->max_storage_binding = static_cast<uint64_t>(limit("maxStorageBufferBindingSize"));
  limits->max_buffer = static_cast<uint64_t>(limit("maxBufferSize"));
  limits->max_workgroup_storage = word("maxComputeWorkgroupStorageSize");
  limits->max_workgroup_invocations = word("maxComputeInvocationsPerWorkgroup");
  limits->max_workgroups = word("maxComputeWorkgroupsPerDimension");
  return kStatusSuccess;
}

Future request_device(Adapter adapter, const DeviceDescriptor* descriptor, CallbackInfo answer) {
  void* const callbacks[] = {answer.call,
                             answer.user1,
                             answer.user2,
                             descriptor->lost.call,
                             descriptor->lost.user1,
                             descriptor->lost.user2,
                             descriptor->error.call,
                             descriptor->error.user1,
                             descriptor->error.user2};
  loom_page_request_device(adapter, descriptor->features, descriptor->feature_count, callbacks);
  return {};
}

// ---- objects of a device

BindGroupLayout create_bind_group_layout(Device device,
                                         const BindGroupLayoutDescriptor* descriptor) {
  std::vector<uint32_t> entries;
  for (size_t i = 0; i < descriptor->count; ++i) {
    const BindGroupLayoutEntry& entry = descriptor->entries[i];
    entries.insert(entries.end(), {entry.binding, entry.buffer.type, entry.buffer.dynamic});
  }
  return loom_page_create_bind_group_layout(device, entries.data(), descriptor->count);
}

BindGroup create_bind_group(Device device, const BindGroupDescriptor* descriptor) {
  std::vector<double> entries;
  for (size_t i = 0; i < descriptor->count; ++i) {
    const BindGroupEntry& entry = descriptor->entries[i];
    entries.insert(entries.end(),
                   {static_cast<double>(entry.binding),
                    static_cast<double>(reinterpret_cast<uintptr_t>(entry.buffer)),
                    static_cast<double>(entry.offset), static_cast<double>(entry.size)});
  }
  return loom_page_create_bind_group(device, descriptor->layout, entries.data(), descriptor->count);
}

ComputePipeline create_compute_pipeline(Device device,
                                        const ComputePipelineDescriptor* descriptor) {
  const std::string_view entry = descriptor->compute.entry.view(), label = descriptor->label.view();
  return loom_page_create_compute_pipeline(device, descriptor->layout, descriptor->compute.module,
                                           entry.data(), entry.size(), label.data(), label.size());
}

// The backend chains only the text of a shader to each descriptor.
ShaderModule create_shader_module(Device device, const ShaderModuleDescriptor* descriptor) {
  const auto* source = reinterpret_cast<const ShaderSource*>(descriptor->next);
  const std::string_view code = source->code.view(), label = descriptor->label.view();
  return loom_page_create_shader_module(device, code.data(), code.size(), label.data(),
                                        label.size());
}

// The bytes are copied into the memory of the module, and freed when the buffer is unmapped.
const void* mapped_range(Buffer buffer, size_t offset, size_t size) {
  void* memory = std::malloc(size);
  if (memory != nullptr && loom_page_copy_mapped(buffer, offset, size, memory) != 0) return memory;
  std::free(memory);
  return nullptr;
}

template <class Handle>
void release(Handle handle) {
  loom_page_release(handle);
}

// ---- the table

void fill_device(Api& api) {
  api.CreateInstance = [](const void*) { return reinterpret_cast<Instance>(1); };
  api.InstanceRequestAdapter = [](Instance, const RequestAdapterOptions*, CallbackInfo info) {
    loom_page_request_adapter(info.call, info.user1, info.user2);
    return Future{};
  };
  api.InstanceProcessEvents = [](Instance) { loom_page_process_events(); };
  api.InstanceWaitForEvent = [](Instance) { loom_page_wait_for_event(); };
  api.InstanceRelease = [](Instance) {};
  api.AdapterGetLimits = &adapter_limits;
  api.AdapterGetInfo = &adapter_info;
  api.AdapterInfoFreeMembers = [](AdapterInfo) {};
  api.AdapterHasFeature = &loom_page_has_feature;
  api.AdapterRequestDevice = &request_device;
  api.DeviceGetQueue = &loom_page_device_queue;
  api.DevicePushErrorScope = &loom_page_push_error_scope;
  api.DevicePopErrorScope = [](Device device, CallbackInfo info) {
    loom_page_pop_error_scope(device, info.call, info.user1, info.user2);
    return Future{};
  };
  api.DeviceDestroy = &loom_page_destroy_device;
}

void fill_makers(Api& api) {
  api.DeviceCreateBuffer = [](Device device, const BufferDescriptor* descriptor) {
    return loom_page_create_buffer(device, static_cast<double>(descriptor->size),
                                   static_cast<uint32_t>(descriptor->usage));
  };
  api.DeviceCreateShaderModule = &create_shader_module;
  api.DeviceCreateBindGroupLayout = &create_bind_group_layout;
  api.DeviceCreatePipelineLayout = [](Device device, const PipelineLayoutDescriptor* descriptor) {
    return loom_page_create_pipeline_layout(device, descriptor->layouts, descriptor->count);
  };
  api.DeviceCreateComputePipeline = &create_compute_pipeline;
  api.DeviceCreateBindGroup = &create_bind_group;
  api.DeviceCreateCommandEncoder = [](Device device, const void*) {
    return loom_page_create_command_encoder(device);
  };
  api.DeviceCreateQuerySet = [](Device, const QuerySetDescriptor*) { return QuerySet{}; };
}

void fill_commands(Api& api) {
  api.QueueSubmit = [](Queue queue, size_t count, const CommandBuffer* commands) {
    loom_page_submit(queue, commands, count);
  };
  api.QueueWriteBuffer = [](Queue queue, Buffer buffer, uint64_t offset, const void* data,
                            size_t size) {
    loom_page_write_buffer(queue, buffer, static_cast<double>(offset), data, size);
  };
  api.CommandEncoderBeginComputePass = [](CommandEncoder encoder, const ComputePassDescriptor*) {
    return loom_page_begin_compute_pass(encoder);
  };
  api.CommandEncoderCopyBufferToBuffer = [](CommandEncoder encoder, Buffer from,
                                            uint64_t from_offset, Buffer to, uint64_t to_offset,
                                            uint64_t size) {
    loom_page_copy_buffer(encoder, from, static_cast<double>(from_offset), to,
                          static_cast<double>(to_offset), static_cast<double>(size));
  };
  api.CommandEncoderClearBuffer = [](CommandEncoder encoder, Buffer buffer, uint64_t offset,
                                     uint64_t size) {
    loom_page_clear_buffer(encoder, buffer, static_cast<double>(offset), static_cast<double>(size));
  };
  api.CommandEncoderResolveQuerySet = [](CommandEncoder, QuerySet, uint32_t, uint32_t, Buffer,
                                         uint64_t) {};
  api.CommandEncoderFinish = [](CommandEncoder encoder, const void*) {
    return loom_page_finish(encoder);
  };
  api.ComputePassEncoderSetPipeline = &loom_page_set_pipeline;
  api.ComputePassEncoderSetBindGroup = &loom_page_set_bind_group;
  api.ComputePassEncoderDispatchWorkgroups = &loom_page_dispatch;
  api.ComputePassEncoderEnd = &loom_page_end_pass;
  api.BufferMapAsync = [](Buffer buffer, Flags, size_t offset, size_t size, CallbackInfo info) {
    loom_page_map_buffer(buffer, static_cast<double>(offset), static_cast<double>(size), info.call,
                         info.user1, info.user2);
    return Future{};
  };
  api.BufferGetConstMappedRange = &mapped_range;
  api.BufferUnmap = [](Buffer buffer) { std::free(loom_page_unmap(buffer)); };
  api.BufferGetSize = [](Buffer buffer) {
    return static_cast<uint64_t>(loom_page_buffer_size(buffer));
  };
  api.BufferDestroy = &loom_page_destroy_buffer;
}

void fill_releases(Api& api) {
  api.AdapterRelease = &release<Adapter>;
  api.DeviceRelease = &release<Device>;
  api.QueueRelease = &release<Queue>;
  api.CommandEncoderRelease = &release<CommandEncoder>;
  api.CommandBufferRelease = &release<CommandBuffer>;
  api.ComputePassEncoderRelease = &release<ComputePassEncoder>;
  api.BufferRelease = &release<Buffer>;
  api.ShaderModuleRelease = &release<ShaderModule>;
  api.BindGroupLayoutRelease = &release<BindGroupLayout>;
  api.PipelineLayoutRelease = &release<PipelineLayout>;
  api.ComputePipelineRelease = &release<ComputePipeline>;
  api.BindGroupRelease = &release<BindGroup>;
  api.QuerySetRelease = [](QuerySet) {};
}

constexpr size_t kLongestMessage = 1024;
char message[kLongestMessage];

}  // namespace

// ---- results, which JavaScript delivers while the module is suspended or idle

extern "C" {

// The buffer for the text of a result: kLongestMessage bytes.
__attribute__((export_name("loom_gpu_message"))) char* loom_gpu_message() {
  return message;
}

// `shape`: the callback type of wgpu.hpp that `call` has. `value`: a handle, or the type of an
// error.
__attribute__((export_name("loom_gpu_answer"))) void loom_gpu_answer(uint32_t shape, void* call,
                                                                     void* user1, void* user2,
                                                                     uint32_t status,
                                                                     uintptr_t value,
                                                                     size_t length) {
  const StringView text(std::string_view(message, length < kLongestMessage ? length : 0));
  switch (shape) {
    case 0:
      return reinterpret_cast<RequestAdapterCallback>(call)(
          status, reinterpret_cast<Adapter>(value), text, user1, user2);
    case 1:
      return reinterpret_cast<RequestDeviceCallback>(call)(status, reinterpret_cast<Device>(value),
                                                           text, user1, user2);
    case 2: return reinterpret_cast<BufferMapCallback>(call)(status, text, user1, user2);
    case 3:
      return reinterpret_cast<PopErrorScopeCallback>(call)(status, static_cast<uint32_t>(value),
                                                           text, user1, user2);
    case 4:  // a lost device, an uncaptured error: the same type; `status` is the reason
      return reinterpret_cast<DeviceLostCallback>(call)(nullptr, status, text, user1, user2);
    default: return;
  }
}

}  // extern "C"

std::span<const std::string_view> library_names() {
  return {};
}

Result<Api> open_library(const std::string& path, std::string* opened) {
  if (!path.empty()) {
    return unsupported(cat(path, ": a page has the WebGPU of its browser; leave the name out"));
  }
  if (opened != nullptr) *opened = kPage.name;
  Api api;
  fill_device(api);
  fill_makers(api);
  fill_commands(api);
  fill_releases(api);
  api.flavour = kPage;
  return api;
}

}  // namespace loom::core::wgpu
