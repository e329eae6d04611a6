// The GPU for tests: the adapter of the library that LOOM_WEBGPU_LIB names. LOOM_GPU_FEATURES=off
// disables optional features; LOOM_GPU_VARIANT names the variant of all tiled products. Tests that
// need a GPU skip without one.
#pragma once

#include <memory>
#include <string>

#include "backend/webgpu/webgpu.hpp"

namespace loom::core::test {

// May be null: there is none, and no_gpu() has the reason. Opened once per process.
webgpu::Backend* gpu();
// A second instance of the adapter without optional features; may be null: there is none.
std::unique_ptr<webgpu::Backend> gpu_without_features();
const std::string& no_gpu();

}  // namespace loom::core::test
