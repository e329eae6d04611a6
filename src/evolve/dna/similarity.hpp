// Similarities of many cells at once. Cells of one kind and equal lengths are read in blocks, each
// block once, and all their pairs are summed in parallel: no vector is ever completely in memory.
#pragma once

#include <functional>

#include "evolve/dna/signature.hpp"

namespace loom::core {

// A loaded network and the signatures of its cells.
struct SignedNetwork {
  const Network* network = nullptr;
  std::vector<CellSignature> cells;
};

// Weights compared since the last call; false: stop.
using Compared = std::function<bool(uint64_t weights)>;

// Similarities [rows.size()][columns.size()] of cells of a with cells of b, all of the same lengths
// leaf by leaf. Errors: cancelled.
Result<std::vector<double>> similarities(const SignedNetwork& a, const std::vector<size_t>& rows,
                                         const SignedNetwork& b, const std::vector<size_t>& columns,
                                         ThreadPool& pool, const Compared& compared);

// Two cells of one type (children included), of any widths: see DnaMode::aligned.
double aligned_similarity(const SignedNetwork& a, size_t cell_a, const SignedNetwork& b,
                          size_t cell_b);

}  // namespace loom::core
