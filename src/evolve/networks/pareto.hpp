// Several objectives at a time: one that is better in one and worse in none dominates. Ranks and
// crowding of NSGA-II (Deb, Pratap, Agarwal and Meyarivan, 2002). Lower values are better; NaN is
// the worst.
#pragma once

#include <cstddef>
#include <vector>

namespace loom::core {

using Aims = std::vector<double>;  // of one individual; all have the same length

bool dominates(const Aims& a, const Aims& b);
// Rank 0 is the front, which none dominates; k is the front without all ranks below k.
std::vector<int> front_ranks(const std::vector<Aims>& all);
// The distance between the neighbours of each within its rank, summed over the objectives as shares
// of their ranges; infinite at the ends.
std::vector<double> crowding(const std::vector<Aims>& all, const std::vector<int>& ranks);
// The best `count` by rank, then by crowding, then by number.
std::vector<size_t> select_best(const std::vector<Aims>& all, size_t count);

}  // namespace loom::core
