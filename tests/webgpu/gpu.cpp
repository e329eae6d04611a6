#include "webgpu/gpu.hpp"

#include <cstdlib>
#include <string_view>

namespace loom::core::test {
namespace {

struct Opened {
  std::unique_ptr<webgpu::Backend> backend;
  std::string why;
};

webgpu::OpenOptions named_library() {
  webgpu::OpenOptions options;
  if (const char* path = std::getenv("LOOM_WEBGPU_LIB")) options.library = path;
  return options;
}

const Opened& opened() {
  // Never closed: drivers end their threads themselves.
  static const auto* const kOpened = [] {
    auto* result = new Opened;
    webgpu::OpenOptions options = named_library();
    const char* features = std::getenv("LOOM_GPU_FEATURES");
    options.features = features == nullptr || std::string_view(features) != "off";
    options.slow_features = features != nullptr && std::string_view(features) == "all";
    auto backend = webgpu::Backend::open(options);
    Status status = backend.ok() ? Status() : backend.error();
    const char* variant = std::getenv("LOOM_GPU_VARIANT");
    if (status.ok() && variant != nullptr) status = (*backend)->force_variant(variant);
    if (status.ok()) {
      result->backend = std::move(backend.value());
    } else {
      result->why = status.error().str();
    }
    return result;
  }();
  return *kOpened;
}

}  // namespace

webgpu::Backend* gpu() {
  return opened().backend.get();
}

std::unique_ptr<webgpu::Backend> gpu_without_features() {
  webgpu::OpenOptions options = named_library();
  options.features = false;
  auto backend = webgpu::Backend::open(options);
  return backend.ok() ? std::move(backend.value()) : nullptr;
}

const std::string& no_gpu() {
  return opened().why;
}

}  // namespace loom::core::test
