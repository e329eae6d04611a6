#include "learn/observer.hpp"

#include <cmath>

namespace loom::core {

ValueStats value_stats(const Tensor& values) {
  ValueStats s;
  double sum = 0, squares = 0;
  bool any = false;
  for (int64_t r = 0; r < values.rows(); ++r) {
    const float* row = values.f32() + r * values.row_stride;
    for (int64_t c = 0; c < values.cols(); ++c) {
      const auto x = static_cast<double>(row[c]);
      sum += x;
      squares += x * x;
      s.active += std::fabs(x) > 1e-6 ? 1 : 0;
      if (!std::isfinite(x)) continue;
      s.min = any ? std::fmin(s.min, x) : x;
      s.max = any ? std::fmax(s.max, x) : x;
      any = true;
    }
  }
  s.total = values.rows() * values.cols();
  if (s.total == 0) return s;
  const auto n = static_cast<double>(s.total);
  s.mean = sum / n;
  const double variance = squares / n - s.mean * s.mean;
  s.std = std::isfinite(variance) ? std::sqrt(std::fmax(variance, 0.0)) : variance;
  return s;
}

}  // namespace loom::core
