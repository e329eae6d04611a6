#include "evolve/neat/genome_mutation.hpp"

#include <algorithm>
#include <cmath>

namespace loom::core {
namespace {

void insert(NeatGenome& genome, const ConnectionGene& c) {
  const auto at =
      std::ranges::lower_bound(genome.connections, c.innovation, {}, &ConnectionGene::innovation);
  if (at != genome.connections.end() && at->innovation == c.innovation) {
    *at = c;
  } else {
    genome.connections.insert(at, c);
  }
}

bool connected(const NeatGenome& genome, int64_t from, int64_t to) {
  return std::ranges::any_of(genome.connections,
                             [&](const ConnectionGene& c) { return c.from == from && c.to == to; });
}

// Splits an enabled connection: the incoming part has weight 1, the outgoing one the old weight.
bool add_node(NeatGenome& genome, const NeatShape& shape, Innovations& innovations, Draws& draws) {
  std::vector<size_t> open;
  for (size_t i = 0; i < genome.connections.size(); ++i) {
    const NodeGene* from = genome.node(genome.connections[i].from);
    if (genome.connections[i].enabled && from->role != NodeRole::bias) open.push_back(i);
  }
  if (open.empty()) return false;
  const ConnectionGene split = genome.connections[open[draws.below(open.size())]];
  const int64_t id = innovations.node(split, genome);
  const NodeGene node{id, NodeRole::hidden, shape.hidden[draws.below(shape.hidden.size())]};
  genome.nodes.insert(std::ranges::lower_bound(genome.nodes, id, {}, &NodeGene::id), node);
  for (ConnectionGene& c : genome.connections) {
    if (c.innovation == split.innovation) c.enabled = false;
  }
  insert(genome, {innovations.connection(split.from, id), split.from, id, 1.0f, true});
  insert(genome, {innovations.connection(id, split.to), id, split.to, split.weight, true});
  return true;
}

// Joins two nodes without a connection; gives up after some impossible pairs.
bool add_connection(NeatGenome& genome, const NeatShape& shape, const NeatRates& rates,
                    Innovations& innovations, Draws& draws) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    const NodeGene& from = genome.nodes[draws.below(genome.nodes.size())];
    const NodeGene& to = genome.nodes[draws.below(genome.nodes.size())];
    if (to.role == NodeRole::input || to.role == NodeRole::bias) continue;
    if (connected(genome, from.id, to.id)) continue;
    if (!shape.recurrent && leads_to(genome, to.id, from.id)) continue;
    insert(genome, {innovations.connection(from.id, to.id), from.id, to.id,
                    draws.around(rates.first_weight), true});
    return true;
  }
  return false;
}

void change_weights(NeatGenome& genome, const NeatRates& rates, Draws& draws) {
  const auto most = static_cast<float>(rates.weight_limit);
  for (ConnectionGene& c : genome.connections) {
    if (draws.chance(rates.new_weight)) {
      c.weight = draws.around(rates.weight_step);
    } else {
      c.weight += draws.around(rates.weight_step);
    }
    c.weight = std::clamp(c.weight, -most, most);
  }
}

void change_activation(NeatGenome& genome, const NeatShape& shape, Draws& draws) {
  std::vector<NodeGene*> hidden;
  for (NodeGene& n : genome.nodes) {
    if (n.role == NodeRole::hidden) hidden.push_back(&n);
  }
  if (hidden.empty()) return;
  NodeGene& node = *hidden[draws.below(hidden.size())];
  node.activation = shape.hidden[draws.below(shape.hidden.size())];
}

void enable_one(NeatGenome& genome, Draws& draws) {
  std::vector<ConnectionGene*> disabled;
  for (ConnectionGene& c : genome.connections) {
    if (!c.enabled) disabled.push_back(&c);
  }
  if (!disabled.empty()) disabled[draws.below(disabled.size())]->enabled = true;
}

const ConnectionGene* gene_of(const NeatGenome& genome, int64_t innovation) {
  const auto at =
      std::ranges::lower_bound(genome.connections, innovation, {}, &ConnectionGene::innovation);
  return at != genome.connections.end() && at->innovation == innovation ? &*at : nullptr;
}

}  // namespace

NeatGenome first_genome(const NeatShape& shape, const NeatRates& rates, Innovations& innovations,
                        Draws& draws) {
  NeatGenome genome;
  const int64_t bias = shape.inputs;
  for (int64_t i = 0; i < bias; ++i)
    genome.nodes.push_back({i, NodeRole::input, Activation::linear});
  genome.nodes.push_back({bias, NodeRole::bias, Activation::linear});
  for (int64_t i = 0; i < shape.outputs; ++i)
    genome.nodes.push_back({bias + 1 + i, NodeRole::output, shape.output});
  for (int64_t from = 0; shape.connected && from <= bias; ++from) {
    for (int64_t i = 0; i < shape.outputs; ++i) {
      const int64_t to = bias + 1 + i;
      insert(genome,
             {innovations.connection(from, to), from, to, draws.around(rates.first_weight), true});
    }
  }
  return genome;
}

void mutate(NeatGenome& genome, const NeatShape& shape, const NeatRates& rates,
            Innovations& innovations, Draws& draws) {
  if (draws.chance(rates.add_node) && add_node(genome, shape, innovations, draws)) return;
  if (draws.chance(rates.add_connection) &&
      add_connection(genome, shape, rates, innovations, draws))
    return;
  if (draws.chance(rates.weights)) change_weights(genome, rates, draws);
  if (draws.chance(rates.enable)) enable_one(genome, draws);
  if (draws.chance(rates.activation)) change_activation(genome, shape, draws);
}

NeatGenome crossed(const NeatGenome& better, const NeatGenome& other, const NeatRates& rates,
                   Draws& draws) {
  NeatGenome child = better;
  const bool average = draws.chance(rates.average);
  for (ConnectionGene& c : child.connections) {
    const ConnectionGene* match = gene_of(other, c.innovation);
    if (match == nullptr) continue;
    if (average) {
      c.weight = 0.5f * (c.weight + match->weight);
    } else if (draws.chance(0.5)) {
      c.weight = match->weight;
    }
    if (!c.enabled || !match->enabled) c.enabled = !draws.chance(rates.keep_disabled);
  }
  for (NodeGene& n : child.nodes) {
    const NodeGene* match = other.node(n.id);
    if (match != nullptr && n.role == NodeRole::hidden && draws.chance(0.5))
      n.activation = match->activation;
  }
  return child;
}

double distance(const NeatGenome& a, const NeatGenome& b, const NeatRates& rates) {
  double excess = 0, disjoint = 0, matching = 0, difference = 0;
  size_t i = 0, j = 0;
  const auto& left = a.connections;
  const auto& right = b.connections;
  while (i < left.size() || j < right.size()) {
    if (i == left.size() || j == right.size()) {
      ++excess;
      i == left.size() ? ++j : ++i;
    } else if (left[i].innovation == right[j].innovation) {
      difference +=
          std::fabs(static_cast<double>(left[i++].weight) - static_cast<double>(right[j++].weight));
      ++matching;
    } else {
      ++disjoint;
      left[i].innovation < right[j].innovation ? ++i : ++j;
    }
  }
  constexpr size_t kSmall = 20;
  const size_t genes = std::max(left.size(), right.size());
  const double n = genes < kSmall ? 1.0 : static_cast<double>(genes);
  return (rates.excess * excess + rates.disjoint * disjoint) / n +
         (matching > 0 ? rates.weight_difference * difference / matching : 0.0);
}

}  // namespace loom::core
