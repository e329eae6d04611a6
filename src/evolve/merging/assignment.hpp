// Pairing rows with columns, one to one, for the largest sum of gains.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace loom::core {

// gains [n][n]. The column of each row whose sum is largest: the Hungarian method (Kuhn, 1955) with
// potentials and shortest augmenting paths, O(n^3).
std::vector<int64_t> best_assignment(std::span<const double> gains, int64_t n);

// The best pair that is left, again and again; of equal ones that of the lower row, then column.
std::vector<int64_t> greedy_assignment(std::span<const double> gains, int64_t n);

}  // namespace loom::core
