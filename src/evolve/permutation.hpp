// Hidden units in another order: see DnaMode::permutation.
#pragma once

#include <map>

#include "evolve/similarity.hpp"

namespace loom::core {

// Similarities of Dense cells that follow each other, at their own coordinates, once the hidden
// units of b stand as a has them: index of the cell in a -> similarity. Cells that nothing is to be
// reordered for are left out.
std::map<size_t, double> permuted_similarities(const SignedNetwork& a, const SignedNetwork& b,
                                               ThreadPool& pool);

}  // namespace loom::core
