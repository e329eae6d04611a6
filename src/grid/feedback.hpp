// FeedbackMemory: what feedback links carry from one pass to the next. A tensor for every cell that
// such a link reads: its output in the pass before, zeros in the first. A pass reads these tensors
// and never writes them; whoever runs passes writes them behind the last op that may read them,
// gradients included (a gradient needs the very values that its pass read). See docs/state.md.
#pragma once

#include <vector>

#include "grid/network.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

class FeedbackMemory {
 public:
  FeedbackMemory() = default;
  // Zeros, in the compute type of `ops`. shapes: of the output of every cell, or of the largest
  // there will be (Network::shapes).
  static Result<FeedbackMemory> create(const Network& network, const std::vector<Shape>& shapes,
                                       const Ops& ops);

  // Per cell; empty where no feedback link reads it. None at all: the network has none.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  bool empty() const { return memory_.size() == 0; }
  const Buffer& memory() const { return memory_; }
  // The next pass is the first: zeros, on a device as well.
  Status forget(const Ops& ops) const;
  // Takes the shape of other outputs. Errors: larger than at create().
  Status reshape(size_t cell, const Shape& shape);

 private:
  std::vector<Tensor> tensors_;
  std::vector<int64_t> bytes_;
  Buffer memory_;
};

}  // namespace loom::core
