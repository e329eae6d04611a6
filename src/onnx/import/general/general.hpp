// The general way into ONNX: every operator becomes a node of one Graph (layers/core/graph.hpp). It
// is taken where the pattern-wise way (lower.hpp), whose layers are faster, finds no row of layers.
// Constants are folded, shapes are those that the layers infer, unused nodes are dropped. An
// operator without a node is refused by name. Room-private.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "layers/core/graph.hpp"
#include "onnx/import/item.hpp"
#include "onnx/import/reader/importer.hpp"

namespace loom::core {

class GraphImport final : private Importer {
 public:
  // fixed: the batch of the file, which is read as if the file left it open; 0 leaves the file
  // unchanged.
  GraphImport(const OnnxModel& model, const std::string& where, const OnnxImportOptions& options,
              int64_t open_batch, int64_t fixed = 0)
      : Importer(model, where, options, open_batch), fixed_(fixed) {}
  using Importer::depends_on_batch, Importer::refusal;
  Result<ImportedNetwork> run();
  // Whether layers of the model read the same weights, which here stay one.
  static bool shares_weights(const OnnxModel& model);

 private:
  // A value of the graph: known while reading, or computed by a node.
  struct Value : ImportValue {
    GraphValue at{-2, 0};  // of a node, or the input
    Shape shape;           // that the node gives; a single number is [1]
    bool scalar = false;   // a single number without axes
    // The distance of two samples along the axis that holds the batch, in values. 0 if the axis is
    // one sample.
    int64_t inner = 0;
    std::string name;  // of the file, where a function may go into the layer that made it
    // The value as an element-wise function of `base`. May be null: not known.
    ExprRef f;
    GraphValue base{-2, 0};
    std::shared_ptr<const std::vector<Value>> items;  // of a list; then it is nothing else
    int rank() const { return scalar ? 0 : shape.rank(); }
  };
  struct GraphNode {
    LayerConfig layer;
    std::vector<ItemParam> params;
    std::vector<GraphValue> from;
    double bound = -1;  // no value is larger in magnitude; below 0: not known
    // Its activation was a later node: its result is no longer the base of functions.
    bool activated = false;
    // Identifies its parameters: a number for its kind, its index among the layers of its operator,
    // and the tensors that they are made of. Both directions of a layer read the same tensors.
    int64_t source = 0;
    // The last name of what it gives, and whether another name of it is read as well.
    std::string name;
    bool shared = false;
    std::string weight;  // of one number: its name
    std::string where;   // the node of the file that it was made for
    bool mixes = false;  // it computes with several samples at once
  };
  using Handler = Status (GraphImport::*)(const OnnxNode&);
  struct Row {
    std::string_view op;
    Handler handle;
  };
  static std::span<const Row> rows();
  static bool is_computed_by_row(const std::string& op);

  // general_ports.cpp: inputs and outputs
  Status read_inputs();
  Status read_first(const OnnxValue& given);
  Status read_more(const OnnxValue& given, const OnnxValue& first);
  bool names_rows(const OnnxValue& given) const;
  Result<Value> rows_of_input(const OnnxNode& n, const Value& indices, const Constant& table);
  Status check_one_use(const std::vector<bool>& needed) const;
  bool is_read_otherwise(size_t node, const std::vector<bool>& needed) const;
  Result<Value> same_again(const OnnxNode& n, const Value& x);
  Status settle_outputs();
  Result<int64_t> extent_of(const OnnxValue& given, size_t axis) const;
  struct NamedOutput {
    const Value* value;
    std::string name;
  };
  std::vector<NamedOutput> read_outputs(std::vector<std::string>& notes) const;
  Status check_first(const OnnxNode& end, const Value& y);
  std::string mixed_for(const NamedOutput& output) const;
  std::vector<bool> needed_for(const std::vector<NamedOutput>& outputs) const;
  Result<ImportedNetwork> finish();

  // general.cpp: the walk
  Result<ImportedNetwork> walk();
  Status node(const OnnxNode& n);
  bool stays_nodes(const OnnxNode& n) const;
  bool folds_as_tensors(const OnnxNode& n) const;
  Status fold_as_tensors(const OnnxNode& n);
  bool grows_with_batch(const OnnxNode& n) const;
  Status check_lists(const OnnxNode& n) const;
  const ImportValue* find(const std::string& name) const override;
  std::vector<int64_t> extents(const ImportValue& computed) const override;
  Status define_constant(const OnnxNode& n, ImportValue value) override;
  Status define_same(const OnnxNode& n) override;
  int64_t folded_source(const OnnxNode& n) override;
  void add_own_operators(std::vector<std::string>& names) const override;
  Result<const Value*> value(const OnnxNode& n, size_t i) const;
  // Whether input i is a weight of one number that stays a node of its own.
  bool stays_number(const OnnxNode& n, size_t i);
  // Parameter `path` of a layer with the values of input i, in the order that the layer has them.
  ItemParam param(const OnnxNode& n, size_t i, std::string path, const Shape& shape,
                  std::vector<float> values) const;
  // Input i as a stream: a constant becomes a node.
  Result<Value> stream(const OnnxNode& n, size_t i);
  bool is_shared_node(const OnnxNode& n, size_t i, const Constant& c) const;
  // trained: it is a weight.
  Result<Value> constant_stream(const OnnxNode& n, const Constant& c, bool trained = false);
  Result<Value> emit(const OnnxNode& n, LayerKind kind, const std::vector<Field>& fields,
                     const std::vector<Value>& inputs, std::vector<ItemParam> params = {});
  Status define(const OnnxNode& n, Value value, size_t output = 0);
  // Whether this name of x is read once, and no other: then a layer may become what reads it.
  bool read_once(const std::string& name, const Value& x) const;

  // general_shared.cpp
  int64_t source_of(const OnnxNode& n, std::string_view becomes);
  int64_t source_of_rows(const OnnxNode& n, size_t i);
  int64_t owner_of(size_t i, std::vector<int64_t>& first) const;

  // general_branches.cpp
  static constexpr int64_t kCopiesOfEach = 24;  // values that may be made of one of the file
  void count_uses(const OnnxGraph& graph);
  Status read_constants(const OnnxGraph& graph);
  Result<std::vector<Value>> taken(const OnnxNode& n, std::string_view branch);
  Status chosen_by_sample(const OnnxNode& n, const Value& condition);
  Status if_node(const OnnxNode& n);

  double bound_of(const GraphNode& made, const std::vector<Value>& inputs) const;
  double bound(const Value& v) const;

  // general_math.cpp
  Result<Value> number(const OnnxNode& n, double x);
  Result<Value> with_number(const OnnxNode& n, std::string_view function, const Value& x, double y);
  Value named(const OnnxNode& n, const Value& x);
  Value as_function(const Value& x) const;
  void remember(Value& y, std::string_view op, const Value& a, const Value* b, const double* number,
                bool number_first) const;
  Result<bool> recognized(const OnnxNode& n, Value& y);
  bool reads_alone(const OnnxNode& n, const GraphValue& at) const;
  Result<bool> is_matrix_of_layer(const OnnxNode& n) const;
  bool shares_rows(const OnnxNode& n, size_t i) const;
  Result<bool> gemm_bias(const OnnxNode& n, int64_t outputs, double beta, ConstantRef& bias);
  Result<Value> unary(const OnnxNode& n, std::string_view function, const Value& x);
  Result<Value> binary(const OnnxNode& n, std::string_view function, const Value& a,
                       const Value& b);
  Status unary_node(const OnnxNode& n);
  Status binary_node(const OnnxNode& n);
  Status pow_node(const OnnxNode& n);
  Result<Value> power(const OnnxNode& n, const Value& x, double p);
  Status clip_node(const OnnxNode& n);
  Status leaky_node(const OnnxNode& n);
  Status gelu(const OnnxNode& n, bool by_tanh) override;
  Status hard_sigmoid_node(const OnnxNode& n);
  Status softmax(const OnnxNode& n, int64_t axis, bool log) override;
  Status reduce_node(const OnnxNode& n);
  Status matmul(const OnnxNode& n) override;
  Status gemm(const OnnxNode& n, const OnnxGemm& args) override;
  Result<Value> dense(const OnnxNode& n, const Value& x, const Constant& w, bool transposed,
                      const Constant* bias, double scale);

  // general_layers.cpp
  Status conv(const OnnxNode& n, OnnxConv args) override;
  Status normalize(const OnnxNode& n, const OnnxBatchNorm& args) override;
  Status measured_norm(const OnnxNode& n, const Value& x, double eps);
  Status layer_norm_node(const OnnxNode& n);
  Result<Value> per_channel(const OnnxNode& n, const Value& x, const std::vector<double>& scale,
                            const std::vector<double>& shift);

  // general_logic.cpp: true is 1, false 0; integers are themselves, as floats
  Result<Value> numbers(const OnnxNode& n, size_t i);
  bool finite(const OnnxNode& n, size_t i);
  Result<Value> negated(const OnnxNode& n, const Value& truth);
  Result<Value> at_least(const OnnxNode& n, const Value& a, const Value& b);
  Result<Value> infinite(const OnnxNode& n, const Value& x, double side);
  Result<Value> both_infinite(const OnnxNode& n, const Value& a, const Value& b);
  Result<Value> equal(const OnnxNode& n, const Value& a, const Value& b, bool simple);
  Result<Value> chosen(const OnnxNode& n, const Value& test, const Value& a, const Value& b);
  Result<Value> detached(const OnnxNode& n, const Value& x);
  Result<Value> rounded(const OnnxNode& n, const Value& given);
  Result<Value> sign(const OnnxNode& n, const Value& x);
  Result<Value> floored(const OnnxNode& n, const Value& x, bool up);
  int64_t rows_of_ids() const;
  Result<bool> ids_beside(const OnnxNode& n, Value& y);
  Status compare_node(const OnnxNode& n);
  Status logic_node(const OnnxNode& n);
  Status where(const OnnxNode& n) override;
  Status round_node(const OnnxNode& n);
  // general_sines.cpp
  Status sine_node(const OnnxNode& n);
  Status cast(const OnnxNode& n, OnnxType from, OnnxType to) override;

  // general_places.cpp
  Status arg_node(const OnnxNode& n);
  Status one_hot_node(const OnnxNode& n);
  Status repeated(const OnnxNode& n, const Constant& c, int64_t extent);
  Status gather_elements_node(const OnnxNode& n);
  Result<Value> hot(const OnnxNode& n, const Value& indices, int64_t extent);
  Status inside(const OnnxNode& n, const Value& indices, int64_t extent) const;
  Result<Value> looked_up(const OnnxNode& n, const Value& indices, const Constant& table);
  Status lrn_node(const OnnxNode& n);
  Status tile_node(const OnnxNode& n);
  Status trilu_node(const OnnxNode& n);
  Status sum_so_far_node(const OnnxNode& n);

  // general_resize.cpp
  Status resize_node(const OnnxNode& n);
  Result<Value> along(const OnnxNode& n, const Value& x, int axis, const Constant& matrix);

  // general_sequence.cpp
  Status recurrent(const OnnxNode& n, const OnnxRecurrence& args) override;
  Result<std::vector<Value>> starting_states(const OnnxNode& n, bool two, size_t way,
                                             int64_t hidden);
  Status define_recurrent(const OnnxNode& n, const std::array<std::vector<Value>, 3>& outputs);

  // general_pools.cpp
  Result<Value> padded(const OnnxNode& n, const Value& x, OnnxWindow& window);
  Status pool_node(const OnnxNode& n);
  Status pad_node(const OnnxNode& n);
  Status blocks_node(const OnnxNode& n);
  Status instance_norm_node(const OnnxNode& n);

  // general_attention.cpp
  Result<Value> by_heads(const OnnxNode& n, size_t i, std::string_view attribute_of_heads);
  Result<Value> repeated_heads(const OnnxNode& n, const Value& x, int64_t heads);
  Result<Value> score_mask(const OnnxNode& n, int64_t rows, int64_t cols);
  Status attention_node(const OnnxNode& n);

  // general_einsum.cpp
  Result<Value> in_order(const OnnxNode& n, const Value& x, std::string_view word,
                         std::string_view to);
  Result<Value> summed(const OnnxNode& n, const Value& x, std::string& word, std::string_view kept);
  Status einsum_node(const OnnxNode& n);

  // general_lists.cpp
  Result<Value> list_of(const OnnxNode& n, size_t i) const;
  Result<int64_t> place_in(const OnnxNode& n, size_t i, size_t items, bool behind);
  Result<Value> sliced(const OnnxNode& n, const Value& x, int64_t axis, int64_t first,
                       int64_t last);
  Result<Value> without_axis(const OnnxNode& n, const Value& x, int64_t axis);
  Status split_to_list_node(const OnnxNode& n);
  Status make_list_node(const OnnxNode& n);
  Status list_item_node(const OnnxNode& n);
  Status list_length_node(const OnnxNode& n);
  Status change_list_node(const OnnxNode& n);
  Status join_list_node(const OnnxNode& n);

  // general_batch.cpp: files that fix the batch, read as if they left it open
  int64_t batch_axis(const Value& v) const;
  Result<std::vector<int64_t>> opened(const OnnxNode& n, const Value& x, std::vector<int64_t> dims,
                                      int64_t& inner) const;
  int64_t opened(int64_t extent, int64_t have) const;
  bool takes_all(const Value& x, const std::vector<int64_t>& indices) const;
  void keep_inner(const std::vector<Value>& inputs, Value& made) const;
  void find_mixing();

  // general_shapes.cpp
  Status size_node(const OnnxNode& n);
  Status reshape(const OnnxNode& n) override;
  Status transpose(const OnnxNode& n, const std::vector<int64_t>& order) override;
  Status slice(const OnnxNode& n, OnnxSlice args) override;
  Status split_node(const OnnxNode& n);
  Result<bool> is_empty(const OnnxNode& n, size_t i);
  Status concat(const OnnxNode& n, int64_t axis) override;
  Status expand(const OnnxNode& n, const std::vector<int64_t>& to) override;
  Status look_up(const OnnxNode& n, int64_t axis) override;
  Status pick(const OnnxNode& n, int64_t axis, const Constant& indices) override;
  Status gather_nd_node(const OnnxNode& n);
  Result<Value> picked(const OnnxNode& n, const Value& x, int64_t axis,
                       std::vector<int64_t> indices);
  Result<Value> for_each_sample(const OnnxNode& n, const Value& x, int axis);
  Result<Value> view(const OnnxNode& n, const Value& x, const std::vector<int64_t>& dims);

  const int64_t fixed_;
  bool alone_ = false;  // the network takes one sample at a time, whatever its layers take
  std::vector<GraphNode> nodes_;
  std::map<std::string, Value, std::less<>> values_;
  int64_t with_weights_ = 0;  // layers with weights that the operator under way became
  std::map<std::string, int64_t, std::less<>> made_of_others_;
  std::map<std::vector<int64_t>, Value> moved_;  // bases of functions, by what they are and order
  std::map<std::string, int, std::less<>>
      uses_;  // of values by name, outputs of the model included
  std::map<std::string, Value, std::less<>> tied_;  // nodes of weights that several nodes read
  std::vector<std::string> notes_;
  // Weights of one number that are read, and whether functions may take them for numbers.
  std::set<std::string, std::less<>> numbers_;
  bool folds_numbers_ = false;
  // Inputs besides the first that hold integers, by the node that has their values. They are the
  // node Input of these numbers, and that of the same input as ids of tables; -1 if no table reads
  // it.
  struct WholeInput {
    int64_t numbers = -1, ids = -1;
  };
  std::map<int64_t, WholeInput> whole_inputs_;
};

}  // namespace loom::core
