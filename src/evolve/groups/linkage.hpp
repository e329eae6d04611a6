// Hierarchical grouping by the distances of all pairs: loom/cluster.hpp.
#pragma once

#include "evolve/dna/distances.hpp"

namespace loom::core {

// distances: see pair_distances(), of n points; changed. Errors: none.
Linkage link_groups(std::vector<double> distances, int64_t n, LinkageMethod method);

// Groups after the first `merges` merges.
std::vector<int64_t> groups_after(const Linkage& tree, int64_t merges);

}  // namespace loom::core
