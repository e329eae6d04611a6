// What tests on the GPU share: the adapter (LOOM_WEBGPU_LIB names the library), threads, distances.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/thread_pool.hpp"
#include "webgpu/gpu.hpp"

#define LOOM_NEEDS_GPU() \
  if (::loom::test::gpu() == nullptr) GTEST_SKIP() << ::loom::test::no_gpu()

namespace loom::test {

inline ThreadPool& threads() {
  static ThreadPool pool(1);
  return pool;
}

// LOOM_GPU_CASES=all: what would take too long where a CPU plays the GPU.
inline bool all_cases() {
  const char* cases = std::getenv("LOOM_GPU_CASES");
  return cases != nullptr && std::string_view(cases) == "all";
}

// Root mean square of the differences over that of `expected`.
inline double distance(std::span<const float> expected, std::span<const float> got) {
  double error = 0, norm = 1e-30;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double d = static_cast<double>(got[i]) - static_cast<double>(expected[i]);
    error += d * d;
    norm += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return std::sqrt(error / norm);
}

}  // namespace loom::test
