#include "evolve/neat/genome.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/text.hpp"

namespace loom::core {
namespace {

Status check_connection(const NeatGenome& genome, const ConnectionGene& c) {
  const NodeGene* to = genome.node(c.to);
  if (genome.node(c.from) == nullptr || to == nullptr)
    return invalid(cat("connection ", c.innovation, " leads from node ", c.from, " to node ", c.to,
                       ", of which one is not there"));
  if (to->role == NodeRole::input || to->role == NodeRole::bias)
    return invalid(cat("connection ", c.innovation, " leads to an input"));
  if (!std::isfinite(c.weight))
    return invalid(cat("connection ", c.innovation, " has a weight that is not finite"));
  return {};
}

}  // namespace

const NodeGene* NeatGenome::node(int64_t id) const {
  const auto at = std::ranges::lower_bound(nodes, id, {}, &NodeGene::id);
  return at != nodes.end() && at->id == id ? &*at : nullptr;
}

int64_t NeatGenome::count(NodeRole role) const {
  return std::ranges::count(nodes, role, &NodeGene::role);
}

int64_t NeatGenome::enabled() const {
  return std::ranges::count(connections, true, &ConnectionGene::enabled);
}

Status check_genome(const NeatGenome& genome, bool recurrent) {
  if (genome.count(NodeRole::output) < 1 || genome.count(NodeRole::bias) != 1)
    return invalid("a genome has outputs and one bias");
  for (size_t i = 1; i < genome.nodes.size(); ++i) {
    if (genome.nodes[i].id <= genome.nodes[i - 1].id)
      return invalid(cat("node ", genome.nodes[i].id, " is out of order"));
  }
  for (size_t i = 0; i < genome.connections.size(); ++i) {
    const ConnectionGene& c = genome.connections[i];
    if (i > 0 && c.innovation <= genome.connections[i - 1].innovation)
      return invalid(cat("connection ", c.innovation, " is out of order"));
    LOOM_TRY(check_connection(genome, c));
  }
  // Disabled connections count: they may be enabled again.
  if (!recurrent && topological_order(genome).size() != genome.nodes.size())
    return invalid("the connections of a genome close a cycle, but it is not recurrent");
  return {};
}

std::unordered_map<int64_t, std::vector<int64_t>> targets_of(const NeatGenome& genome) {
  std::unordered_map<int64_t, std::vector<int64_t>> targets;
  for (const ConnectionGene& c : genome.connections) targets[c.from].push_back(c.to);
  return targets;
}

std::vector<int64_t> topological_order(const NeatGenome& genome) {
  const auto targets = targets_of(genome);
  std::unordered_map<int64_t, int64_t> incoming;
  for (const ConnectionGene& c : genome.connections) ++incoming[c.to];
  std::vector<int64_t> order;
  for (const NodeGene& n : genome.nodes) {
    if (!incoming.contains(n.id)) order.push_back(n.id);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    const auto at = targets.find(order[i]);
    if (at == targets.end()) continue;
    for (const int64_t to : at->second) {
      if (--incoming[to] == 0) order.push_back(to);
    }
  }
  return order;
}

bool leads_to(const NeatGenome& genome, int64_t from, int64_t to) {
  const auto targets = targets_of(genome);
  std::vector<int64_t> reached = {from};
  std::unordered_set<int64_t> visited = {from};
  for (size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] == to) return true;
    const auto at = targets.find(reached[i]);
    if (at == targets.end()) continue;
    for (const int64_t next : at->second) {
      if (visited.insert(next).second) reached.push_back(next);
    }
  }
  return false;
}

int64_t Innovations::connection(int64_t from, int64_t to) {
  const auto [at, fresh] =
      numbers_.try_emplace(key(from, to), static_cast<int64_t>(connections_.size()));
  if (fresh) connections_.emplace_back(from, to);
  return at->second;
}

int64_t Innovations::node(const ConnectionGene& split, const NeatGenome& genome) {
  for (const Split& s : splits_) {
    if (s.connection == split.innovation && genome.node(s.node) == nullptr) return s.node;
  }
  splits_.push_back({split.innovation, next_node_});
  return next_node_++;
}

Result<Innovations> Innovations::from(std::vector<std::pair<int64_t, int64_t>> connections,
                                      std::vector<Split> splits, int64_t next_node) {
  Innovations out(next_node);
  const auto known = [&](int64_t id) { return id >= 0 && id < next_node; };
  if (next_node < 0 || next_node > INT32_MAX)
    return invalid(cat("the next node cannot be ", next_node));
  for (const auto& [from, to] : connections) {
    if (!known(from) || !known(to)) return invalid(cat("no nodes ", from, " and ", to));
    const auto number = static_cast<int64_t>(out.connections_.size());
    if (out.connection(from, to) != number)
      return invalid(cat("the connection from node ", from, " to node ", to, " is there twice"));
  }
  for (const Split& s : splits) {
    if (!known(s.node) || s.connection < 0 ||
        s.connection >= static_cast<int64_t>(out.connections_.size()))
      return invalid(cat("a split of connection ", s.connection, " into node ", s.node));
  }
  out.splits_ = std::move(splits);
  return out;
}

}  // namespace loom::core
