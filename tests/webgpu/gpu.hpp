// The GPU that tests run on: the adapter of the library that LOOM_WEBGPU_LIB names, without
// optional features for LOOM_GPU_FEATURES=off, all products in tiles by the variant that
// LOOM_GPU_VARIANT names. Tests that need one skip without.
#pragma once

#include <memory>
#include <string>

#include "backend/webgpu/webgpu.hpp"

namespace loom::core::test {

// Null: there is none, and no_gpu() says why. Opened once per process.
webgpu::Backend* gpu();
// The same adapter once more, without optional features; null: there is none.
std::unique_ptr<webgpu::Backend> gpu_without_features();
const std::string& no_gpu();

}  // namespace loom::core::test
