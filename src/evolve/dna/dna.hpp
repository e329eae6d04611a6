// DNA of two loaded networks: every cell's similarity to every other of its kind, moved cells, and
// the scores. loom/dna.hpp defines the terms.
#pragma once

#include "evolve/dna/similarity.hpp"
#include "loom/dna.hpp"

namespace loom::core {

// options.engine is ignored.
Result<DnaComparison> compare_networks(const Network& a, const Network& b,
                                       const DnaOptions& options, ThreadPool& pool);

// The vector of a cell, see loom::dna_signature().
std::vector<double> signature_vector(const Network& network, const CellSignature& cell);

}  // namespace loom::core
