// Network: a finalized grid. Topology is fixed; parameters are owned here, packed in their own
// dtype, and shared by all sessions. finalize() checks shapes cell by cell and names both
// coordinates where two do not fit.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grid/grid.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

struct Param {
  std::string path;                 // "(1, 0, 0, 0)/0/q": cell, child indices, name
  const ParamSpec& spec;            // of Network::specs_; equal ones are one
  Tensor tensor;                    // empty until loaded
  std::optional<DType> dtype = {};  // asked for by the cell
  Buffer memory;
  Coord cell = {};        // that owns it
  int child = -1;         // of that cell's children, which one holds it; -1: the cell's own layer
  bool frozen = false;    // by Cell::frozen
  int64_t bytes() const;  // that its tensor takes, wherever it lies
};

// Values of parameters by what training does with them.
struct ParamCounts {
  int64_t trained = 0;
  int64_t frozen = 0;    // by Cell::frozen
  int64_t constant = 0;  // buffers and constants: no training changes them by a gradient
};

// One layer of the tree; children of containers below it.
struct Node {
  explicit Node(const LayerConfig& c) : config(c) {}
  const LayerConfig& config;  // in GridNode::cell
  std::vector<Node> children;
  std::vector<int> params;  // indices into Network::params()
  int rope = -1;            // index into Network::ropes()
  int state = -1;           // index into Network::states()
  int input = -1;           // index into Network::more_inputs()
  int id = 0;               // position in the tree: a stream of random numbers
  bool disabled() const { return config.disabled; }
};

// What a cell takes and gives.
struct CellShapes {
  Shape in, out;
  std::vector<Shape> more = {};  // of the last cell: its outputs behind the first
};

struct GridNode {
  Coord at;
  std::shared_ptr<const Cell> cell;  // as the description has it
  Shape in, out;                     // for the input shape given to finalize()
  Node node;
  int link = -1;  // index into Network::cells() of the cell it is linked to
  bool feedback = false;
  bool skip = false;  // the link is its second input; the first comes from the cell before
};

class Network {
 public:
  // `input`: shape of the largest input, [batch, ...]. Ids for an Embedding count as [batch, time].
  static Result<Network> finalize(const GridSpec& spec, const Shape& input);

  const std::vector<GridNode>& cells() const { return cells_; }
  const std::vector<Param>& params() const { return params_; }
  const std::vector<RopeSpec>& ropes() const { return ropes_; }
  const std::vector<StateSpec>& states() const { return states_; }
  const Shape& input() const { return input_; }  // as given to finalize()
  const Shape& output() const { return cells_.back().out; }
  // Inputs besides the first, in the order of the layers that bring them (layers/input.cpp).
  const std::vector<InputSpec>& more_inputs() const { return more_inputs_; }
  // Outputs of the last cell behind the first, for the input of finalize().
  const std::vector<Shape>& more_outputs() const { return more_outputs_; }
  int nodes() const { return nodes_; }
  bool has_links() const { return has_links_; }
  // Per cell: whether a feedback link reads its output.
  std::vector<bool> fed_back() const;
  // What every cell takes and gives for an input of another shape than that of finalize(). A
  // feedback link brings the shape of its source, whatever the cell before its reader gives
  // (docs/decisions/0075). Errors: invalid, naming the two cells that do not fit.
  Result<std::vector<CellShapes>> shapes(const Shape& input) const;
  int find_param(std::string_view path) const;  // -1: none
  // Ids of the input are below this, the rows of its smallest table; 0: the input are numbers.
  int64_t vocab() const;
  int64_t param_count() const;
  ParamCounts param_counts() const;
  int64_t param_bytes() const;  // packed, shared ones once

  // Fills rows [first, first + count) of a parameter as f32, row-major. Called in ascending order,
  // maybe twice.
  using RowSource = std::function<Status(int64_t first, int64_t count, float* out)>;
  // Stores parameter `index` in `dtype` (vectors always f32), a few rows at a time, so that no
  // unpacked copy of the whole tensor ever exists. Rows are packed by all lanes of `pool`.
  // held: ranges that scales are taken from, of all rows.
  Status load_param(int index, DType dtype, const RowSource& source, ThreadPool& pool,
                    ScaleScope scope = ScaleScope::per_row, const FrozenRanges& held = {});
  // All parameters loaded? The Error names the first that is not.
  Status check_loaded() const;
  Param& param(int index) { return params_[static_cast<size_t>(index)]; }
  // Parameter `index` is `tensor`, in memory that adopt() keeps alive and nobody writes: a mapped
  // file. Errors: another shape, or a layout that parameters do not have.
  Status map_param(int index, const Tensor& tensor);
  // `owner` lives as long as the network. `check` is called once for every parameter before the
  // first pass of a session that uses it (a file's checksum); its Error ends that pass.
  void adopt(std::shared_ptr<const void> owner, std::function<Status(int index)> check);
  // Calls `check` of adopt() for a parameter, or for those of a node, unless that was done.
  Status check_param(int index) const;
  Status check_node(const Node& node) const;
  // Zero-filled memory of a parameter: matrices packed in `dtype`, vectors in `vectors`.
  Status allocate_param(int index, DType dtype, DType vectors = DType::f32);

 private:
  // Where a layer that shares finds its parameters: the layer at the same place in `who`, a cell or
  // a node of a Graph; null where that has none there.
  struct Owner {
    std::string who;
    const Node* node = nullptr;
  };
  static std::optional<Owner> owner_of_child(const Node& parent, size_t i, const std::string& path,
                                             const Owner* owner);

  void reserve(const GridSpec& spec);
  Status add_cell(const GridSpec& spec, int64_t index);
  // Where a linked cell takes its input from: see GridNode.
  struct Incoming {
    int link = -1;
    bool feedback = false, skip = false;
  };
  Result<Incoming> resolve_link(const GridSpec& spec, const Cell& cell, const Coord& at);
  Result<Owner> owner_of(const GridSpec& spec, const Cell& cell, const Coord& at) const;
  void mark_child(const Node& node, int child, size_t first);
  Status mark_frozen(const Cell& cell, const Coord& at, size_t first);
  Result<Node> add_node(const LayerConfig& config, const std::string& path, const Owner* owner);
  Result<int> input_for(const InputSpec& spec, const std::string& path);
  Result<int> param_for(const ParamSpec& spec, const std::string& path, const Owner* owner);

  std::vector<GridNode> cells_;
  struct SpecOrder {
    bool operator()(const ParamSpec& a, const ParamSpec& b) const;
  };
  std::set<ParamSpec, SpecOrder> specs_;
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
