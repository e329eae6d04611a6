#include "evolve/neat/genome_network.hpp"

#include <algorithm>

#include "base/numbers/fma.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

bool fires(const NodeGene& n) {
  return n.role == NodeRole::hidden || n.role == NodeRole::output;
}

// The level of every node, by id: 0 for inputs, else 1 + the highest of its sources over enabled
// connections. A node without inputs has level 1, like those that read only inputs.
std::unordered_map<int64_t, int64_t> levels_of(const NeatGenome& genome) {
  std::unordered_map<int64_t, int64_t> levels;
  for (const NodeGene& n : genome.nodes) levels[n.id] = fires(n) ? 1 : 0;
  std::unordered_map<int64_t, std::vector<int64_t>> targets;
  for (const ConnectionGene& c : genome.connections) {
    if (c.enabled) targets[c.from].push_back(c.to);
  }
  for (const int64_t id : topological_order(genome)) {
    const auto at = targets.find(id);
    if (at == targets.end()) continue;
    for (const int64_t to : at->second) levels[to] = std::max(levels[to], levels[id] + 1);
  }
  return levels;
}

}  // namespace

Result<GenomeNetwork> GenomeNetwork::create(const NeatGenome& genome, bool recurrent, float slope) {
  LOOM_TRY(check_genome(genome, recurrent));
  GenomeNetwork out;
  out.recurrent_ = recurrent;
  out.inputs_ = static_cast<size_t>(genome.count(NodeRole::input));
  std::unordered_map<int64_t, int64_t> levels;
  if (!recurrent) levels = levels_of(genome);
  std::vector<NodeGene> order;
  std::ranges::copy_if(genome.nodes, std::back_inserter(order), fires);
  const auto level = [&](const NodeGene& n) { return levels[n.id]; };
  std::ranges::stable_sort(order, {}, level);

  std::unordered_map<int64_t, size_t> index_of;
  for (const NodeGene& n : genome.nodes) {
    if (n.role == NodeRole::input) index_of.emplace(n.id, index_of.size());
  }
  int64_t bias = -1;
  for (const NodeGene& n : genome.nodes) {
    if (n.role == NodeRole::bias) bias = n.id;
  }
  for (const NodeGene& n : order) {
    const size_t at = out.inputs_ + out.nodes_.size();
    index_of[n.id] = at;
    out.nodes_.push_back({at, level(n), n.activation, 0.0f, {}});
  }
  for (const ConnectionGene& c : genome.connections) {
    if (!c.enabled) continue;
    GenomeNode& node = out.nodes_[index_of[c.to] - out.inputs_];
    const float weight = c.weight * slope;
    if (c.from == bias) {
      node.bias = weight;
    } else {
      node.inputs.emplace_back(index_of[c.from], weight);
    }
  }
  for (GenomeNode& node : out.nodes_)
    std::ranges::sort(node.inputs, {}, [](const auto& input) { return input.first; });
  for (const NodeGene& n : genome.nodes) {
    if (n.role == NodeRole::output) out.outputs_.push_back(index_of[n.id]);
  }
  out.reset();
  return out;
}

void GenomeNetwork::reset() {
  values_.assign(inputs_ + nodes_.size(), 0.0f);
  next_ = values_;
}

float GenomeNetwork::fire(const GenomeNode& node) const {
  float sum = 0;
  for (const auto& [input_index, weight] : node.inputs)
    sum = fused(values_[input_index], weight, sum);
  return activate(node.activation, 0.0f + sum + node.bias);
}

void GenomeNetwork::step(std::span<const float> x, std::span<float> y) {
  std::ranges::copy(x, values_.begin());
  if (recurrent_) {
    for (const GenomeNode& node : nodes_) next_[node.at] = fire(node);
    std::copy(next_.begin() + static_cast<int64_t>(inputs_), next_.end(),
              values_.begin() + static_cast<int64_t>(inputs_));
  } else {
    for (const GenomeNode& node : nodes_) values_[node.at] = fire(node);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) y[i] = values_[outputs_[i]];
}

}  // namespace loom::core
