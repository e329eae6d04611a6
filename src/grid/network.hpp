// Network: a finalized grid. Topology is fixed; parameters are owned here, packed in their own
// dtype, and shared by all sessions. finalize() checks shapes cell by cell and names both
// coordinates where two do not fit.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grid/grid.hpp"

namespace loom {

struct Param {
  std::string path;  // "(1, 0, 0, 0)/0/q": cell, child indices, name
  ParamSpec spec;
  Tensor tensor;  // empty until loaded
  Buffer memory;
  int64_t bytes() const { return memory.size(); }
};

// One layer of the tree; children of containers below it.
struct Node {
  LayerConfig config;  // children stripped
  std::vector<Node> children;
  std::vector<int> params;  // indices into Network::params()
  int rope = -1;            // index into Network::ropes()
  int state = -1;           // index into Network::states()
  bool disabled() const { return config.disabled; }
};

struct GridNode {
  Coord at;
  Shape in, out;  // for the input shape given to finalize()
  Node node;
};

class Network {
 public:
  // `input`: shape of the largest input, [batch, ...]. Ids for an Embedding count as [batch, time].
  static Result<Network> finalize(const GridSpec& spec, const Shape& input);

  const std::vector<GridNode>& cells() const { return cells_; }
  const std::vector<Param>& params() const { return params_; }
  const std::vector<RopeSpec>& ropes() const { return ropes_; }
  const std::vector<StateSpec>& states() const { return states_; }
  int find_param(std::string_view path) const;  // -1: none
  int64_t param_count() const;
  int64_t param_bytes() const;  // packed, shared ones once

  // Fills rows [first, first + count) of a parameter as f32, row-major. Called in ascending order,
  // maybe twice.
  using RowSource = std::function<Status(int64_t first, int64_t count, float* out)>;
  // Stores parameter `index` in `dtype` (vectors always f32), a few rows at a time, so that no
  // unpacked copy of the whole tensor ever exists. Rows are packed by all lanes of `pool`.
  Status load_param(int index, DType dtype, const RowSource& source, ThreadPool& pool,
                    ScaleScope scope = ScaleScope::per_row);
  // All parameters loaded? The Error names the first that is not.
  Status check_loaded() const;

 private:
  Result<Node> add_node(const LayerConfig& config, const std::string& path, const Node* owner);
  Result<int> param_for(const ParamSpec& spec, const std::string& path, const Node* owner);

  std::vector<GridNode> cells_;
  std::vector<Param> params_;
  std::vector<RopeSpec> ropes_;
  std::vector<StateSpec> states_;
};

}  // namespace loom
