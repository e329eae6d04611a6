// Genomes of NEAT (Stanley and Miikkulainen, "Evolving neural networks through augmenting
// topologies", 2002): a network as genes of nodes and of connections. A connection has the number
// of the innovation that first made it. So genes of two genomes are matched by number, whatever
// their topologies.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "evolve/draws.hpp"
#include "ops/families/fwd.hpp"
#include "ops/operands.hpp"

namespace loom::core {

enum class NodeRole : uint8_t { input, bias, output, hidden };

// Ids: inputs 0 .. n - 1, the bias n, then outputs, then hidden nodes.
struct NodeGene {
  int64_t id = 0;
  NodeRole role = NodeRole::hidden;
  Activation activation = Activation::sigmoid;  // of outputs and hidden nodes
  bool operator==(const NodeGene&) const = default;
};
struct ConnectionGene {
  int64_t innovation = 0;
  int64_t from = 0, to = 0;  // ids of nodes
  float weight = 0;
  bool enabled = true;
  bool operator==(const ConnectionGene&) const = default;
};

struct NeatGenome {
  std::vector<NodeGene> nodes;              // by id, ascending
  std::vector<ConnectionGene> connections;  // by innovation, ascending

  const NodeGene* node(int64_t id) const;
  int64_t count(NodeRole role) const;
  int64_t enabled() const;  // connections
  bool operator==(const NeatGenome&) const = default;
};

// Checks that a genome can run. Ids and innovations ascend; connections join existing nodes, none
// leads to an input; weights are finite; without `recurrent` there is no cycle. Errors:
// invalid_argument.
Status check_genome(const NeatGenome& genome, bool recurrent);

// The ids of nodes that each node leads to over connections, enabled or not.
std::unordered_map<int64_t, std::vector<int64_t>> targets_of(const NeatGenome& genome);
// Ids in an order in which every connection leads to a later one. Nodes on a cycle, and those after
// it, are missing.
std::vector<int64_t> topological_order(const NeatGenome& genome);

// Whether there is a path from one node to another over connections, enabled or not.
bool leads_to(const NeatGenome& genome, int64_t from, int64_t to);

// The numbers of innovations. The same connection and the same split get the same number, in every
// genome and generation.
class Innovations {
 public:
  struct Split {
    int64_t connection = 0;  // innovation that was split
    int64_t node = 0;        // the new node in its middle
  };

  explicit Innovations(int64_t first_node = 0) : next_node_(first_node) {}

  int64_t connection(int64_t from, int64_t to);
  // The node of a split, or a new one if `genome` has that node already.
  int64_t node(const ConnectionGene& split, const NeatGenome& genome);

  // For files.
  int64_t next_node() const { return next_node_; }
  const std::vector<std::pair<int64_t, int64_t>>& connections() const { return connections_; }
  const std::vector<Split>& splits() const { return splits_; }
  // Errors: invalid_argument (a connection twice, a node that is not below `next_node`).
  static Result<Innovations> from(std::vector<std::pair<int64_t, int64_t>> connections,
                                  std::vector<Split> splits, int64_t next_node);

 private:
  static uint64_t key(int64_t from, int64_t to) {
    return static_cast<uint64_t>(from) << 32 | static_cast<uint64_t>(to);
  }
  int64_t next_node_ = 0;
  std::vector<std::pair<int64_t, int64_t>> connections_;  // the n-th has number n
  std::vector<Split> splits_;
  std::unordered_map<uint64_t, int64_t> numbers_;
};

}  // namespace loom::core
