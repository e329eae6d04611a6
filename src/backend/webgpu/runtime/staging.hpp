// Staging: a buffer that the device copies to and the host maps, and the state of its reads.
#pragma once

#include <vector>

#include "backend/webgpu/runtime/answers.hpp"
#include "backend/webgpu/runtime/gpu.hpp"

namespace loom::core::webgpu {

struct Gpu::Staging {
  wgpu::Buffer buffer = nullptr;
  int64_t bytes = 0;
  enum class State : uint8_t { free, staged, mapped };
  std::atomic<State> state = State::free;
  int64_t used = 0;
  std::vector<Read> reads;
  Done mapped;
};

}  // namespace loom::core::webgpu
