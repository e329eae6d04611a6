#include "telemetry/record.hpp"

#include <algorithm>
#include <cmath>

namespace loom::core {
namespace {

// Minimum, maximum and sums of the finite values.
Histogram measured(std::span<const float> values) {
  Histogram h;
  for (const float value : values) {
    if (!std::isfinite(value)) {
      ++h.not_finite;
      continue;
    }
    const double v = static_cast<double>(value);
    h.min = h.count == 0 ? v : std::min(h.min, v);
    h.max = h.count == 0 ? v : std::max(h.max, v);
    h.sum += v;
    h.sum_of_squares += v * v;
    ++h.count;
  }
  return h;
}

}  // namespace

Histogram make_histogram(std::span<const float> values, int bins) {
  Histogram h = measured(values);
  if (h.count == 0) return h;
  const double width = (h.max - h.min) / bins;
  // If doubles cannot resolve the range at that size, there is one bin.
  const bool one = !(h.min + width > h.min);
  const int count = one ? 1 : bins;
  for (int i = 1; i < count; ++i) h.limits.push_back(h.min + width * i);
  h.limits.push_back(h.max);
  h.counts.assign(static_cast<size_t>(count), 0);
  const double scale = one ? 0 : 1 / width;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double v = static_cast<double>(value);
    // The expected bin, corrected by the exact limits.
    auto bin = std::min(static_cast<size_t>((v - h.min) * scale), h.counts.size() - 1);
    while (v > h.limits[bin]) ++bin;
    while (bin > 0 && v <= h.limits[bin - 1]) --bin;
    ++h.counts[bin];
  }
  return h;
}

}  // namespace loom::core
