#include "backend/webgpu/runtime/library.hpp"

#include "base/shared_library.hpp"
#include "base/text.hpp"

namespace loom::core::wgpu {
namespace {

constexpr std::string_view kNames[] = {"libwebgpu_dawn.so", "libwebgpu_wrapper.so",
                                       "libwgpu_native.so", "libwgpu_native-release.so"};

// Enum values before and after webgpu.h was declared stable (2025-09).
constexpr Flavour kDawn2025{"Dawn (2025)", 3, 10, 17, true};
constexpr Flavour kDawn{"Dawn", 9, 11, 18, true};
constexpr Flavour kWgpuNative{"wgpu-native", 9, 11, 0x00030021, false, 0x00030001};

Flavour flavour_of(void* library) {
  void* symbol = nullptr;
  if (find_function(library, "wgpuGetVersion", symbol)) return kWgpuNative;
  if (find_function(library, "wgpuComputePassEncoderSetImmediates", symbol)) return kDawn;
  return kDawn2025;
}

Result<Api> load(void* library, const std::string& path) {
  Api api;
#define LOOM_WGPU_LOAD(name, result, parameters)                                                \
  if (!find_function(library, "wgpu" #name, api.name)) {                                        \
    return make_error(                                                                          \
        Code::unsupported,                                                                      \
        cat(path, ": no function wgpu" #name "; it is not a webgpu.h library, or an old one")); \
  }
  LOOM_WGPU_FUNCTIONS(LOOM_WGPU_LOAD)
#undef LOOM_WGPU_LOAD
  find_function(library, "wgpuDevicePoll", api.DevicePoll);
  find_function(library, "wgpuComputePassEncoderSetImmediates",
                api.ComputePassEncoderSetImmediates);
  api.flavour = flavour_of(library);
  return api;
}

}  // namespace

std::span<const std::string_view> library_names() {
  return kNames;
}

Result<Api> open_library(const std::string& path, std::string* opened) {
  if (!path.empty()) {
    void* library = open_shared_library(path.c_str());
    if (library == nullptr) {
      return unsupported(cat("no WebGPU library: ", shared_library_error()));
    }
    if (opened != nullptr) *opened = path;
    return load(library, path);
  }
  std::string tried;
  for (std::string_view name : kNames) {
    const std::string file(name);
    if (void* library = open_shared_library(file.c_str())) {
      if (opened != nullptr) *opened = file;
      return load(library, file);
    }
    tried += cat(tried.empty() ? "" : ", ", name);
  }
  return unsupported(
      cat("no WebGPU library: none of ", tried, " is installed; give the path of one"));
}

}  // namespace loom::core::wgpu
