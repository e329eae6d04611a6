// DNA of two loaded networks: every cell's similarity with every other of its kind, what has moved,
// and the scores. What the words mean: loom/dna.hpp.
#pragma once

#include "evolve/similarity.hpp"
#include "loom/dna.hpp"

namespace loom::core {

// options.engine is not asked.
Result<DnaComparison> compare_networks(const Network& a, const Network& b,
                                       const DnaOptions& options, ThreadPool& pool);

// The vector of a cell, see loom::dna_signature().
std::vector<double> signature_vector(const Network& network, const CellSignature& cell);

}  // namespace loom::core
