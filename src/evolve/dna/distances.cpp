#include "evolve/dna/distances.hpp"

#include <cmath>

#include "base/text.hpp"

namespace loom::core {

Result<Points> make_points(int64_t n, int64_t d, std::vector<double> values) {
  if (n < 1 || d < 1) return invalid(cat("points [", n, ", ", d, "]: there are none to group"));
  if (static_cast<int64_t>(values.size()) != n * d)
    return invalid(cat("points [", n, ", ", d, "] are not ", values.size(), " values"));
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    return invalid(cat("point ", static_cast<int64_t>(i) / d, ", column ",
                       static_cast<int64_t>(i) % d, ": is not a finite number"));
  }
  return Points{n, d, std::move(values)};
}

double squared_distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

namespace {

double cosine_distance(std::span<const double> a, std::span<const double> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  if (aa == 0 || bb == 0) return 1;
  const double cosine = ab / (std::sqrt(aa) * std::sqrt(bb));
  return cosine >= 1 ? 0.0 : 1 - cosine;
}

}  // namespace

double distance_of(Distance kind, std::span<const double> a, std::span<const double> b) {
  if (kind == Distance::euclidean) return std::sqrt(squared_distance(a, b));
  if (kind == Distance::cosine) return cosine_distance(a, b);
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::fabs(a[i] - b[i]);
  return sum;
}

std::vector<double> pair_distances(const Points& points, Distance kind, ThreadPool& pool) {
  const int64_t n = points.n;
  std::vector<double> out(static_cast<size_t>(n * (n - 1) / 2));
  pool.run([&](int lane, int lanes) {
    for (int64_t i = lane; i < n; i += lanes) {
      for (int64_t j = i + 1; j < n; ++j)
        out[pair_index(n, i, j)] = distance_of(kind, points.row(i), points.row(j));
    }
  });
  return out;
}

}  // namespace loom::core
