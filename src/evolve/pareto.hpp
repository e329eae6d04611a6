// Several aims at a time: who is better in one and worse in none dominates. Ranks and crowding of
// NSGA-II (Deb, Pratap, Agarwal and Meyarivan, 2002). Values are better the lower they are; one
// that is no number is the worst.
#pragma once

#include <cstddef>
#include <vector>

namespace loom::core {

using Aims = std::vector<double>;  // of one individual; all have equally many

bool dominates(const Aims& a, const Aims& b);
// 0: of the front, which nobody dominates; k: of the front that is left without those below k.
std::vector<int> front_ranks(const std::vector<Aims>& all);
// How far the neighbours of each are apart within its own rank, summed over the aims as shares of
// their ranges; infinite at the ends.
std::vector<double> crowding(const std::vector<Aims>& all, const std::vector<int>& ranks);
// The best `count` by rank, then by crowding, then by number.
std::vector<size_t> select_best(const std::vector<Aims>& all, size_t count);

}  // namespace loom::core
