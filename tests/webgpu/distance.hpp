// The distance of results, for tests on the GPU.
#pragma once

#include <cmath>
#include <span>

namespace loom::core::test {

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

}  // namespace loom::core::test
