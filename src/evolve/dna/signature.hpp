// Signatures: the compared data of a cell. A signature is a tree of layers flattened to its leaves,
// the layers with weights. Each leaf's vector has length 1, and so has every container over its
// leaves, so children have equal weight whatever their sizes. Vectors are never built: a similarity
// is the weighted sum of the leaves' cosines.
#pragma once

#include <string>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "grid/network.hpp"

namespace loom::core {

// Parameters of one layer, in the order of its definition, one after the other.
struct SignatureLeaf {
  std::string at;           // "(0, 0, 1, 0)/0"
  std::string_view type;    // "Dense"
  std::vector<int> params;  // of the network
  int64_t count = 0;        // weights
  std::string shapes;       // of its parameters by name: " weight [9, 8] bias [9]"
  double squares = 0;       // sum of them squared
  double share = 0;         // of the squared length of the cell's vector
};

struct CellSignature {
  Coord at;
  std::string type;                   // with children: "Residual(RmsNorm, SwiGLU)"
  std::string dtype;                  // of most of its weights
  std::vector<SignatureLeaf> leaves;  // empty: a cell without weights
  int64_t count = 0;

  bool zero() const;                                    // all weights are 0
  bool same_lengths(const CellSignature& other) const;  // leaf by leaf
};

// Leaves without their squares and shares.
std::vector<CellSignature> cells_of(const Network& network);
// With them, of a network whose parameters are loaded.
std::vector<CellSignature> signatures_of(const Network& network, ThreadPool& pool);

// Values [first, first + count) of a leaf.
void leaf_values(const Network& network, const SignatureLeaf& leaf, int64_t first, int64_t count,
                 float* out);

// "1,0,0,0"
std::string position_text(const Coord& at);

}  // namespace loom::core
