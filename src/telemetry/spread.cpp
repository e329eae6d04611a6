#include <algorithm>
#include <cmath>

#include "loom/evaluation.hpp"

namespace loom {

Spread spread_of(std::span<const double> values) {
  Spread out;
  std::vector<double> finite;
  for (const double v : values) {
    if (std::isfinite(v)) finite.push_back(v);
  }
  out.count = static_cast<int64_t>(finite.size());
  out.not_finite = static_cast<int64_t>(values.size() - finite.size());
  if (finite.empty()) return out;
  std::ranges::sort(finite);
  const auto n = static_cast<double>(finite.size());
  out.min = finite.front();
  out.max = finite.back();
  const size_t middle = finite.size() / 2;
  out.median = finite.size() % 2 == 1 ? finite[middle] : (finite[middle - 1] + finite[middle]) / 2;
  double sum = 0, squares = 0;
  for (const double v : finite) sum += v;
  out.mean = sum / n;
  for (const double v : finite) squares += (v - out.mean) * (v - out.mean);
  if (finite.size() > 1) out.deviation = std::sqrt(squares / (n - 1));
  return out;
}

}  // namespace loom
