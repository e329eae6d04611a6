// Points as rows of doubles, and the distances between them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/threads/thread_pool.hpp"
#include "loom/cluster.hpp"

namespace loom::core {

// [n][d], all finite.
struct Points {
  int64_t n = 0, d = 0;
  std::vector<double> values;
  std::span<const double> row(int64_t i) const {
    return std::span(values).subspan(static_cast<size_t>(i * d), static_cast<size_t>(d));
  }
};
// Errors: invalid_argument (n or d below 1, another number of values, one that is not finite).
Result<Points> make_points(int64_t n, int64_t d, std::vector<double> values);

// Distances of two vectors of equal length; sums over ascending elements.
double squared_distance(std::span<const double> a, std::span<const double> b);
double distance_of(Distance kind, std::span<const double> a, std::span<const double> b);

// Distances of all pairs i < j, row by row: the index of (i, j) is i n - i (i + 1) / 2 + j - i - 1.
std::vector<double> pair_distances(const Points& points, Distance kind, ThreadPool& pool);
inline size_t pair_index(int64_t n, int64_t i, int64_t j) {
  return static_cast<size_t>(i * n - i * (i + 1) / 2 + j - i - 1);
}

}  // namespace loom::core
