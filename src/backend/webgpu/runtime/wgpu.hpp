// The part of webgpu.h that this backend uses, declared again: handles, structs and one table of
// function pointers that library.cpp fills from a library opened at run time. Layouts are those of
// the stable header of 2025-09 (webgpu-native/webgpu-headers). Flavour has the differences between
// libraries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace loom::core::wgpu {

#define LOOM_WGPU_HANDLE(name) using name = struct name##Impl*;
LOOM_WGPU_HANDLE(Instance)
LOOM_WGPU_HANDLE(Adapter)
LOOM_WGPU_HANDLE(Device)
LOOM_WGPU_HANDLE(Queue)
LOOM_WGPU_HANDLE(Buffer)
LOOM_WGPU_HANDLE(ShaderModule)
LOOM_WGPU_HANDLE(BindGroupLayout)
LOOM_WGPU_HANDLE(PipelineLayout)
LOOM_WGPU_HANDLE(ComputePipeline)
LOOM_WGPU_HANDLE(BindGroup)
LOOM_WGPU_HANDLE(CommandEncoder)
LOOM_WGPU_HANDLE(ComputePassEncoder)
LOOM_WGPU_HANDLE(CommandBuffer)
LOOM_WGPU_HANDLE(QuerySet)
#undef LOOM_WGPU_HANDLE

using Bool = uint32_t;
using Flags = uint64_t;

struct StringView {
  const char* data = nullptr;
  size_t length = SIZE_MAX;  // SIZE_MAX means zero-terminated, or absent

  StringView() = default;
  StringView(std::string_view text) : data(text.data()), length(text.size()) {}
  std::string_view view() const {
    if (data == nullptr) return {};
    return length == SIZE_MAX ? std::string_view(data) : std::string_view(data, length);
  }
};

struct Chained {
  Chained* next = nullptr;
  uint32_t type = 0;
};
constexpr uint32_t kShaderSourceWgsl = 2;
constexpr uint32_t kDawnToggles = 0x0005000A;

constexpr uint32_t kStatusSuccess = 1;
constexpr uint32_t kProcessEvents = 2, kSpontaneous = 3;  // when callbacks are called
constexpr uint32_t kHighPerformance = 2;
constexpr uint32_t kAdapterCpu = 3;
constexpr uint32_t kBackendNull = 1;
constexpr uint32_t kErrorNone = 1, kErrorOutOfMemory = 3;
constexpr uint32_t kFilterValidation = 1, kFilterOutOfMemory = 2, kFilterInternal = 3;
constexpr uint32_t kLostDestroyed = 2, kLostCancelled = 3;
constexpr Flags kMapRead = 1, kCopySrc = 4, kCopyDst = 8, kUniform = 0x40, kStorage = 0x80,
                kQueryResolve = 0x200;
constexpr Flags kForReading = 1;
constexpr Flags kComputeStage = 4;
constexpr uint32_t kBindUniform = 2, kBindStorage = 3, kBindReadOnly = 4;
constexpr uint32_t kQueryTimestamp = 2;

struct Future {
  uint64_t id = 0;
};

// All callbacks with a mode have this shape. `call` is cast to the type that the library expects.
struct CallbackInfo {
  Chained* next = nullptr;
  uint32_t mode = kProcessEvents;
  void* call = nullptr;
  void* user1 = nullptr;
  void* user2 = nullptr;
};
struct ErrorCallbackInfo {
  Chained* next = nullptr;
  void* call = nullptr;
  void* user1 = nullptr;
  void* user2 = nullptr;
};

using RequestAdapterCallback = void (*)(uint32_t status, Adapter, StringView, void*, void*);
using RequestDeviceCallback = void (*)(uint32_t status, Device, StringView, void*, void*);
using BufferMapCallback = void (*)(uint32_t status, StringView, void*, void*);
using PopErrorScopeCallback = void (*)(uint32_t status, uint32_t type, StringView, void*, void*);
using DeviceLostCallback = void (*)(const Device*, uint32_t reason, StringView, void*, void*);
using UncapturedErrorCallback = void (*)(const Device*, uint32_t type, StringView, void*, void*);

struct RequestAdapterOptions {
  Chained* next = nullptr;
  uint32_t feature_level = 0;
  uint32_t power = kHighPerformance;
  Bool fallback = 0;
  uint32_t backend = 0;
  void* surface = nullptr;
};

struct AdapterInfo {
  Chained* next = nullptr;
  StringView vendor, architecture, device, description;
  uint32_t backend = 0, type = 0, vendor_id = 0, device_id = 0;
  uint32_t subgroup_min = 0, subgroup_max = 0;
};

struct Limits {
  Chained* next = nullptr;
  uint32_t max_texture_1d = 0, max_texture_2d = 0, max_texture_3d = 0, max_texture_layers = 0;
  uint32_t max_bind_groups = 0, max_bind_groups_plus_vertex_buffers = 0;
  uint32_t max_bindings_per_group = 0;
  uint32_t max_dynamic_uniform_buffers = 0, max_dynamic_storage_buffers = 0;
  uint32_t max_sampled_textures = 0, max_samplers = 0, max_storage_buffers = 0;
  uint32_t max_storage_textures = 0, max_uniform_buffers = 0;
  uint64_t max_uniform_binding = 0, max_storage_binding = 0;
  uint32_t min_uniform_alignment = 0, min_storage_alignment = 0;
  uint32_t max_vertex_buffers = 0;
  uint64_t max_buffer = 0;
  uint32_t max_vertex_attributes = 0, max_vertex_stride = 0, max_inter_stage_variables = 0;
  uint32_t max_color_attachments = 0, max_color_bytes = 0;
  uint32_t max_workgroup_storage = 0, max_workgroup_invocations = 0;
  uint32_t max_workgroup_x = 0, max_workgroup_y = 0, max_workgroup_z = 0;
  uint32_t max_workgroups = 0;
  uint32_t max_immediate = 0;
  // Room for members that some libraries have beyond the standard.
  uint32_t beyond[16] = {};
};

struct QueueDescriptor {
  Chained* next = nullptr;
  StringView label;
};
struct DeviceDescriptor {
  Chained* next = nullptr;
  StringView label;
  size_t feature_count = 0;
  const uint32_t* features = nullptr;
  const Limits* limits = nullptr;
  QueueDescriptor queue;
  CallbackInfo lost;
  ErrorCallbackInfo error;
};
// Dawn's switches, chained to the descriptor of a device.
struct Toggles {
  Chained chain{nullptr, kDawnToggles};
  size_t enabled_count = 0;
  const char* const* enabled = nullptr;
  size_t disabled_count = 0;
  const char* const* disabled = nullptr;
};

struct BufferDescriptor {
  Chained* next = nullptr;
  StringView label;
  Flags usage = 0;
  uint64_t size = 0;
  Bool mapped = 0;
};
struct ShaderSource {
  Chained chain{nullptr, kShaderSourceWgsl};
  StringView code;
};
struct ShaderModuleDescriptor {
  Chained* next = nullptr;
  StringView label;
};

struct BufferBindingLayout {
  Chained* next = nullptr;
  uint32_t type = 0;
  Bool dynamic = 0;
  uint64_t min_size = 0;
};
// Layouts of samplers and textures, unused: all zero.
struct SamplerBindingLayout {
  Chained* next = nullptr;
  uint32_t type = 0;
};
struct TextureBindingLayout {
  Chained* next = nullptr;
  uint32_t sample_type = 0, dimension = 0;
  Bool multisampled = 0;
};
struct StorageTextureBindingLayout {
  Chained* next = nullptr;
  uint32_t access = 0, format = 0, dimension = 0;
};
struct BindGroupLayoutEntry {
  Chained* next = nullptr;
  uint32_t binding = 0;
  Flags visibility = kComputeStage;
  uint32_t array_size = 0;
  BufferBindingLayout buffer;
  SamplerBindingLayout sampler;
  TextureBindingLayout texture;
  StorageTextureBindingLayout storage_texture;
};
struct BindGroupLayoutDescriptor {
  Chained* next = nullptr;
  StringView label;
  size_t count = 0;
  const BindGroupLayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor {
  Chained* next = nullptr;
  StringView label;
  size_t count = 0;
  const BindGroupLayout* layouts = nullptr;
  uint32_t immediate_size = 0;
};
struct ComputeState {
  Chained* next = nullptr;
  ShaderModule module = nullptr;
  StringView entry;
  size_t constant_count = 0;
  const void* constants = nullptr;
};
struct ComputePipelineDescriptor {
  Chained* next = nullptr;
  StringView label;
  PipelineLayout layout = nullptr;
  ComputeState compute;
};
struct BindGroupEntry {
  Chained* next = nullptr;
  uint32_t binding = 0;
  Buffer buffer = nullptr;
  uint64_t offset = 0, size = 0;
  void* sampler = nullptr;
  void* texture = nullptr;
};
struct BindGroupDescriptor {
  Chained* next = nullptr;
  StringView label;
  BindGroupLayout layout = nullptr;
  size_t count = 0;
  const BindGroupEntry* entries = nullptr;
};
struct TimestampWrites {
  Chained* next = nullptr;
  QuerySet queries = nullptr;
  uint32_t begin = 0, end = 0;
};
struct ComputePassDescriptor {
  Chained* next = nullptr;
  StringView label;
  const TimestampWrites* timestamps = nullptr;
};
struct QuerySetDescriptor {
  Chained* next = nullptr;
  StringView label;
  uint32_t type = kQueryTimestamp;
  uint32_t count = 0;
};

// The functions: F(name, result, parameters). Symbols have the prefix `wgpu`. Descriptors that are
// always absent are void pointers.
#define LOOM_WGPU_FUNCTIONS(F)                                                                \
  F(CreateInstance, Instance, (const void*))                                                  \
  F(InstanceRequestAdapter, Future, (Instance, const RequestAdapterOptions*, CallbackInfo))   \
  F(InstanceProcessEvents, void, (Instance))                                                  \
  F(InstanceRelease, void, (Instance))                                                        \
  F(AdapterGetLimits, uint32_t, (Adapter, Limits*))                                           \
  F(AdapterGetInfo, uint32_t, (Adapter, AdapterInfo*))                                        \
  F(AdapterInfoFreeMembers, void, (AdapterInfo))                                              \
  F(AdapterHasFeature, Bool, (Adapter, uint32_t))                                             \
  F(AdapterRequestDevice, Future, (Adapter, const DeviceDescriptor*, CallbackInfo))           \
  F(AdapterRelease, void, (Adapter))                                                          \
  F(DeviceGetQueue, Queue, (Device))                                                          \
  F(DeviceCreateBuffer, Buffer, (Device, const BufferDescriptor*))                            \
  F(DeviceCreateShaderModule, ShaderModule, (Device, const ShaderModuleDescriptor*))          \
  F(DeviceCreateBindGroupLayout, BindGroupLayout, (Device, const BindGroupLayoutDescriptor*)) \
  F(DeviceCreatePipelineLayout, PipelineLayout, (Device, const PipelineLayoutDescriptor*))    \
  F(DeviceCreateComputePipeline, ComputePipeline, (Device, const ComputePipelineDescriptor*)) \
  F(DeviceCreateBindGroup, BindGroup, (Device, const BindGroupDescriptor*))                   \
  F(DeviceCreateCommandEncoder, CommandEncoder, (Device, const void*))                        \
  F(DeviceCreateQuerySet, QuerySet, (Device, const QuerySetDescriptor*))                      \
  F(DevicePushErrorScope, void, (Device, uint32_t))                                           \
  F(DevicePopErrorScope, Future, (Device, CallbackInfo))                                      \
  F(DeviceDestroy, void, (Device))                                                            \
  F(DeviceRelease, void, (Device))                                                            \
  F(QueueSubmit, void, (Queue, size_t, const CommandBuffer*))                                 \
  F(QueueWriteBuffer, void, (Queue, Buffer, uint64_t, const void*, size_t))                   \
  F(QueueRelease, void, (Queue))                                                              \
  F(CommandEncoderBeginComputePass, ComputePassEncoder,                                       \
    (CommandEncoder, const ComputePassDescriptor*))                                           \
  F(CommandEncoderCopyBufferToBuffer, void,                                                   \
    (CommandEncoder, Buffer, uint64_t, Buffer, uint64_t, uint64_t))                           \
  F(CommandEncoderClearBuffer, void, (CommandEncoder, Buffer, uint64_t, uint64_t))            \
  F(CommandEncoderResolveQuerySet, void,                                                      \
    (CommandEncoder, QuerySet, uint32_t, uint32_t, Buffer, uint64_t))                         \
  F(CommandEncoderFinish, CommandBuffer, (CommandEncoder, const void*))                       \
  F(CommandEncoderRelease, void, (CommandEncoder))                                            \
  F(CommandBufferRelease, void, (CommandBuffer))                                              \
  F(ComputePassEncoderSetPipeline, void, (ComputePassEncoder, ComputePipeline))               \
  F(ComputePassEncoderSetBindGroup, void,                                                     \
    (ComputePassEncoder, uint32_t, BindGroup, size_t, const uint32_t*))                       \
  F(ComputePassEncoderDispatchWorkgroups, void,                                               \
    (ComputePassEncoder, uint32_t, uint32_t, uint32_t))                                       \
  F(ComputePassEncoderEnd, void, (ComputePassEncoder))                                        \
  F(ComputePassEncoderRelease, void, (ComputePassEncoder))                                    \
  F(BufferMapAsync, Future, (Buffer, Flags, size_t, size_t, CallbackInfo))                    \
  F(BufferGetConstMappedRange, const void*, (Buffer, size_t, size_t))                         \
  F(BufferUnmap, void, (Buffer))                                                              \
  F(BufferGetSize, uint64_t, (Buffer))                                                        \
  F(BufferDestroy, void, (Buffer))                                                            \
  F(BufferRelease, void, (Buffer))                                                            \
  F(ShaderModuleRelease, void, (ShaderModule))                                                \
  F(BindGroupLayoutRelease, void, (BindGroupLayout))                                          \
  F(PipelineLayoutRelease, void, (PipelineLayout))                                            \
  F(ComputePipelineRelease, void, (ComputePipeline))                                          \
  F(BindGroupRelease, void, (BindGroup))                                                      \
  F(QuerySetRelease, void, (QuerySet))

// The differences between libraries in numbers and behaviour.
struct Flavour {
  std::string_view name;
  uint32_t timestamp_query = 0, shader_f16 = 0, subgroups = 0;  // numbers of features
  bool dawn = false;                                            // has toggles
  uint32_t immediates = 0;                                      // 0 means none, or not requested
};

struct Api {
#define LOOM_WGPU_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  LOOM_WGPU_FUNCTIONS(LOOM_WGPU_MEMBER)
#undef LOOM_WGPU_MEMBER
  // wgpu-native only: if `wait`, blocks until the submitted work is done.
  Bool (*DevicePoll)(Device, Bool wait, const uint64_t* submission) = nullptr;
  // In a page only, because no wait returns by itself there. Returns after a callback was called,
  // or if none is expected.
  void (*InstanceWaitForEvent)(Instance) = nullptr;
  // Not null if the flavour has immediates.
  void (*ComputePassEncoderSetImmediates)(ComputePassEncoder, uint32_t, const void*,
                                          size_t) = nullptr;
  Flavour flavour;
};

}  // namespace loom::core::wgpu
