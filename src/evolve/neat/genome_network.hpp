// Runs the network of a genome directly: a node is activation(slope x (sum of w x)). Values are
// float32, and sums are chains of fused multiply-adds in the order of the nodes. So the same
// network of Dense layers has the same bits (docs/evolution.md).
#pragma once

#include <span>

#include "evolve/neat/genome.hpp"

namespace loom::core {

// The inputs of a node: indices of values of a network.
struct GenomeNode {
  size_t at = 0;
  int64_t level = 0;  // without cycles: longest path from an input
  Activation activation = Activation::sigmoid;
  float bias = 0;
  std::vector<std::pair<size_t, float>> inputs;  // ascending index, weight x slope
};

class GenomeNetwork {
 public:
  // Values are in the order: inputs, then nodes by level and id. recurrent: nodes by id, and all
  // fire at once on the values of the previous step. Errors: invalid_argument (check_genome).
  static Result<GenomeNetwork> create(const NeatGenome& genome, bool recurrent, float slope);

  size_t inputs() const { return inputs_; }
  size_t outputs() const { return outputs_.size(); }
  const std::vector<GenomeNode>& nodes() const { return nodes_; }
  const std::vector<size_t>& output_indices() const { return outputs_; }

  // Runs one step; recurrent networks continue from the last one. x: inputs(), y: outputs()
  // numbers.
  void step(std::span<const float> x, std::span<float> y);
  void reset();  // all values 0

 private:
  float fire(const GenomeNode& node) const;

  size_t inputs_ = 0;
  bool recurrent_ = false;
  std::vector<GenomeNode> nodes_;
  std::vector<size_t> outputs_;  // places
  std::vector<float> values_, next_;
};

}  // namespace loom::core
