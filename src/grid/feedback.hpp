// FeedbackMemory: the values that feedback links carry from one pass to the next. It has a tensor
// for every cell that such a link reads: the cell's output in the previous pass, zeros in the
// first. A pass only reads these tensors. The driver writes them after the last op that may read
// them, gradients included, because a gradient needs the same values as its pass. See
// docs/state.md.
#pragma once

#include <vector>

#include "grid/network.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

class FeedbackMemory {
 public:
  FeedbackMemory() = default;
  // Zeros, in the compute type of `ops`. shapes: of the output of every cell, or the largest ones
  // (Network::shapes).
  static Result<FeedbackMemory> create(const Network& network, const std::vector<Shape>& shapes,
                                       const Ops& ops);

  // Per cell; empty if no feedback link reads it. An empty list means a network without feedback.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  bool empty() const { return memory_.size() == 0; }
  const Buffer& memory() const { return memory_; }
  // Resets to zeros for a first pass, on a device as well.
  Status forget(const Ops& ops) const;
  // Adopts another output shape. Errors: larger than at create().
  Status reshape(size_t cell, const Shape& shape);

 private:
  std::vector<Tensor> tensors_;
  std::vector<int64_t> bytes_;
  Buffer memory_;
};

}  // namespace loom::core
