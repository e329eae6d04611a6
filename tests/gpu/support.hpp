// Helpers of the GPU tests: the adapter (LOOM_WEBGPU_LIB names the library), threads, distances.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "base/threads/thread_pool.hpp"
#include "webgpu/distance.hpp"
#include "webgpu/gpu.hpp"

#define LOOM_NEEDS_GPU() \
  if (::loom::core::test::gpu() == nullptr) GTEST_SKIP() << ::loom::core::test::no_gpu()

namespace loom::core::test {

inline ThreadPool& threads() {
  static ThreadPool pool(1);
  return pool;
}

// LOOM_GPU_CASES=all: tests that take too long if a CPU emulates the GPU.
inline bool all_cases() {
  const char* cases = std::getenv("LOOM_GPU_CASES");
  return cases != nullptr && std::string_view(cases) == "all";
}

}  // namespace loom::core::test
