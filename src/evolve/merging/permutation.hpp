// Hidden units in another order: see DnaMode::permutation.
#pragma once

#include <map>

#include "evolve/dna/similarity.hpp"

namespace loom::core {

// Similarities of consecutive Dense cells at their own coordinates, with the hidden units of b in
// a's order: index of the cell in a -> similarity. Cells without reordering are left out.
std::map<size_t, double> permuted_similarities(const SignedNetwork& a, const SignedNetwork& b,
                                               ThreadPool& pool);

}  // namespace loom::core
