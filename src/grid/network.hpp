// Network: a finalized grid. Its topology is fixed. It owns the parameters, packed in their own
// dtype, and all sessions share them. finalize() checks shapes cell by cell; its errors name both
// coordinates of a mismatch.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grid/grid.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

struct Param {
  std::string path;                 // "(1, 0, 0, 0)/0/q": cell, child indices, name
  const ParamSpec& spec;            // of Network::specs_; equal ones are shared
  Tensor tensor;                    // empty until loaded
  std::optional<DType> dtype = {};  // requested by the cell
  Buffer memory;
  Coord cell = {};        // that owns it
  int child = -1;         // of that cell, the child that holds it; -1 means the cell's own layer
  bool frozen = false;    // by Cell::frozen, or because it has an adapter
  bool adapter = false;   // a matrix of an adapter, always f32
  int64_t bytes() const;  // size of its tensor, in any memory
};

// Counts of parameter values by their role in training.
struct ParamCounts {
  int64_t trained = 0;
  int64_t frozen = 0;    // by Cell::frozen
  int64_t constant = 0;  // buffers and constants: no gradient changes them
};

// An adapter of one weight of a node.
struct NodeAdapter {
  size_t weight = 0;                  // index into Node::params
  int a = 0, b = 0;                   // indices into Network::params()
  const AdapterSpec* spec = nullptr;  // of the cell
};

// One layer of the tree; children of containers below it.
struct Node {
  explicit Node(const LayerConfig& c) : config(c) {}
  const LayerConfig& config;  // in GridNode::cell
  std::vector<Node> children;
  std::vector<int> params;  // indices into Network::params(); those of adapters are last
  std::vector<NodeAdapter> adapters = {};
  int rope = -1;   // index into Network::ropes()
  int state = -1;  // index into Network::states()
  int input = -1;  // index into Network::extra_inputs()
  int id = 0;      // position in the tree: a stream of random numbers
  bool disabled() const { return config.disabled; }
};

// The shapes of a cell's input and output.
struct CellShapes {
  Shape in, out;
  std::vector<Shape> more = {};  // of the last cell: its outputs after the first
};

struct GridNode {
  Coord at;
  std::shared_ptr<const Cell> cell;  // as in the description
  Shape in, out;                     // for the input shape given to finalize()
  Node node;
  int link = -1;  // index into Network::cells() of the cell it is linked to
  bool feedback = false;
  bool skip = false;  // the link is its second input; the first comes from the cell before
};

class Network {
 public:
  // `input`: shape of the largest input, [batch, ...]. Ids for an Embedding have [batch, time].
  static Result<Network> finalize(const GridSpec& spec, const Shape& input);

  const std::vector<GridNode>& cells() const { return cells_; }
  const std::vector<Param>& params() const { return params_; }
  const std::vector<RopeSpec>& ropes() const { return ropes_; }
  const std::vector<StateSpec>& states() const { return states_; }
  const Shape& input() const { return input_; }  // as given to finalize()
  const Shape& output() const { return cells_.back().out; }
  // Inputs besides the first, in the order of the layers that bring them (layers/core/input.cpp).
  const std::vector<InputSpec>& extra_inputs() const { return more_inputs_; }
  // Outputs of the last cell after the first, for the input of finalize().
  const std::vector<Shape>& more_outputs() const { return more_outputs_; }
  int nodes() const { return nodes_; }
  bool has_links() const { return has_links_; }
  bool has_adapters() const;
  // Per cell: whether a feedback link reads its output.
  std::vector<bool> fed_back() const;
  // The shapes of every cell's input and output for another input shape than that of finalize(). A
  // feedback link brings the shape of its source, whatever the cell before its reader outputs
  // (docs/decisions/0075). Errors: invalid, naming the two cells that do not fit.
  Result<std::vector<CellShapes>> shapes(const Shape& input) const;
  int find_param(std::string_view path) const;  // -1 if there is none
  // The limit of ids of the input: the rows of its smallest table. 0 means that the input is
  // numbers.
  int64_t vocab() const;
  int64_t param_count() const;
  ParamCounts param_counts() const;
  int64_t param_bytes() const;  // packed, shared ones once

  // Fills rows [first, first + count) of a parameter as f32, row-major. Called in ascending order,
  // possibly twice.
  using RowSource = std::function<Status(int64_t first, int64_t count, float* out)>;
  // Stores parameter `index` in `dtype` (vectors always f32). It packs a few rows at a time, so an
  // unpacked copy of the whole tensor never exists. All lanes of `pool` pack rows. held: ranges
  // that determine scales, for all rows.
  Status load_param(int index, DType dtype, const RowSource& source, ThreadPool& pool,
                    ScaleScope scope = ScaleScope::per_row, const FrozenRanges& held = {});
  // Whether all parameters are loaded. Errors: the first that is not.
  Status check_loaded() const;
  Param& param(int index) { return params_[static_cast<size_t>(index)]; }
  // Sets parameter `index` to `tensor`, in memory that adopt() keeps alive and that never changes:
  // a mapped file. Errors: another shape, or a layout that parameters do not support.
  Status map_param(int index, const Tensor& tensor);
  // Keeps `owner` alive for the life of the network. `check` is called once for every parameter
  // before the first pass of a session that uses it (a file's checksum). Its Error ends that pass.
  void adopt(std::shared_ptr<const void> owner, std::function<Status(int index)> check);
  // Calls `check` of adopt() for a parameter, or for those of a node, unless it was called before.
  Status check_param(int index) const;
  Status check_node(const Node& node) const;
  // Zero-filled memory of a parameter: matrices packed in `dtype`, vectors in `vectors`.
  Status allocate_param(int index, DType dtype, DType vectors = DType::f32);

 private:
  // The source of shared parameters: the layer at the same location in `who`, a cell or a node of a
  // Graph. null if `who` has no such layer.
  struct Owner {
    std::string who;
    const Node* node = nullptr;
  };
  static std::optional<Owner> owner_of_child(const Node& parent, size_t i, const std::string& path,
                                             const Owner* owner);

  void reserve(const GridSpec& spec);
  Status add_cell(const GridSpec& spec, int64_t index);
  // The input of a linked cell: see GridNode.
  struct Incoming {
    int link = -1;
    bool feedback = false, skip = false;
  };
  Result<Incoming> resolve_link(const GridSpec& spec, const Cell& cell, const Coord& at);
  Result<Owner> owner_of(const GridSpec& spec, const Cell& cell, const Coord& at) const;
  void mark_child(const Node& node, int child, size_t first);
  Status mark_frozen(const Cell& cell, const Coord& at, size_t first);
  Status add_adapters(const Cell& cell, const Coord& at, Node& node);
  Status add_adapter(const AdapterSpec& spec, const std::string& path, size_t weight, Node& node);
  Result<Node> add_node(const LayerConfig& config, const std::string& path, const Owner* owner);
  Result<int> input_for(const InputSpec& spec, const std::string& path);
  Result<int> param_for(const ParamSpec& spec, const std::string& path, const Owner* owner);

  std::vector<GridNode> cells_;
  struct SpecOrder {
    bool operator()(const ParamSpec& a, const ParamSpec& b) const;
  };
  std::set<ParamSpec, SpecOrder> specs_;
  std::set<std::string> names_;  // of parameters of adapters; their specs view them
  std::vector<Param> params_;
  BufferBlocks weights_;
  std::vector<RopeSpec> ropes_;
  std::vector<StateSpec> states_;
  std::vector<InputSpec> more_inputs_;
  std::vector<Shape> more_outputs_;
  Shape input_;
  int nodes_ = 0;
  bool has_links_ = false;
  struct Adopted;
  std::shared_ptr<Adopted> adopted_;
};

}  // namespace loom::core
