// A WebGPU library that fails on demand, for tests: it opens the one that LOOM_FAULTY_OF names and
// forwards every call, except for LOOM_FAULT:
//   lose:N     the device is lost with the Nth submission.
//   shader:N   the Nth shader, from 0, does not compile.
//   buffer:N   a buffer of N bytes or more exceeds the memory.
//   limits     the adapter has 4 storage buffers.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backend/webgpu/runtime/wgpu.hpp"

using namespace loom::core::wgpu;

// Each function is a jump to the address that the constructor below found. Those that fail are
// defined further down, under other names.
#define LOOM_FAULTY_REAL(name, result, parameters)                          \
  extern "C" {                                                              \
  __attribute__((visibility("hidden"))) void* loom_faulty_##name = nullptr; \
  }                                                                         \
  asm(".globl wgpu" #name "\n.type wgpu" #name ", @function\nwgpu" #name    \
      ": jmp *loom_faulty_" #name "(%rip)\n");
LOOM_WGPU_FUNCTIONS(LOOM_FAULTY_REAL)
#undef LOOM_FAULTY_REAL

namespace {

Api real;
Device device = nullptr;
long submissions = 0, shaders = 0;

// The number after "name:" in LOOM_FAULT; -1 for another fault.
long fault(const char* name) {
  const char* setting = std::getenv("LOOM_FAULT");
  const size_t length = std::strlen(name);
  if (setting == nullptr || std::strncmp(setting, name, length) != 0) return -1;
  return setting[length] == ':' ? std::atol(setting + length + 1) : 0;
}

Queue get_queue(Device d) {
  device = d;
  return real.DeviceGetQueue(d);
}

void submit(Queue queue, size_t count, const CommandBuffer* commands) {
  if (submissions++ == fault("lose")) {
    real.DeviceDestroy(device);
    return;
  }
  real.QueueSubmit(queue, count, commands);
}

ShaderModule create_shader(Device d, const ShaderModuleDescriptor* descriptor) {
  if (shaders++ != fault("shader")) return real.DeviceCreateShaderModule(d, descriptor);
  ShaderSource source;
  source.code = StringView("fn main() { nonsense; }");
  ShaderModuleDescriptor broken = *descriptor;
  broken.next = &source.chain;
  return real.DeviceCreateShaderModule(d, &broken);
}

Buffer create_buffer(Device d, const BufferDescriptor* descriptor) {
  BufferDescriptor mine = *descriptor;
  const long bytes = fault("buffer");
  if (bytes >= 0 && mine.size >= static_cast<uint64_t>(bytes)) mine.size = uint64_t{1} << 50;
  return real.DeviceCreateBuffer(d, &mine);
}

uint32_t get_limits(Adapter adapter, Limits* limits) {
  const uint32_t status = real.AdapterGetLimits(adapter, limits);
  if (fault("limits") >= 0) limits->max_storage_buffers = 4;
  return status;
}

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

[[gnu::constructor]] void open_library() {
  const char* path = std::getenv("LOOM_FAULTY_OF");
  void* library = path == nullptr ? nullptr : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fputs("LOOM_FAULTY_OF names no library\n", stderr);
    return;
  }
#define LOOM_FAULTY_FIND(name, result, parameters)   \
  loom_faulty_##name = dlsym(library, "wgpu" #name); \
  real.name = reinterpret_cast<decltype(real.name)>(loom_faulty_##name);
  LOOM_WGPU_FUNCTIONS(LOOM_FAULTY_FIND)
#undef LOOM_FAULTY_FIND
  loom_faulty_DeviceGetQueue = address(get_queue);
  loom_faulty_QueueSubmit = address(submit);
  loom_faulty_DeviceCreateShaderModule = address(create_shader);
  loom_faulty_DeviceCreateBuffer = address(create_buffer);
  loom_faulty_AdapterGetLimits = address(get_limits);
}

}  // namespace
