// The walk over the nodes of an ONNX graph that finds its layers. Values are those of
// values.hpp; layers are Items, each reading others, in an order in which the inputs of an item
// precede it. finish() makes a grid of them (grid.cpp). Room-private.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/import/item.hpp"
#include "onnx/import/reader/importer.hpp"

namespace loom::core {

// A layer under way. Roles: what still may be joined with what follows.
struct Item {
  enum class Role {
    input,
    layer,
    activation,  // a function alone: goes into the layer before it, or becomes a layer
    affine,      // scale and shift per value of one axis: likewise
    attention,   // MultiHeadAttention whose output projection has not come yet
    gated,       // SwiGLU whose down projection has not come yet
    add,         // of two sources
    concat       // of many
  };
  Role role = Role::layer;
  LayerConfig layer;
  std::vector<ItemParam> params;
  std::vector<int> sources;
  Shape out;  // with the batch
  Activation activation = Activation::linear;
  std::vector<float> scale, shift;
  int axis = -1;     // affine: 1, or -1 for the last
  std::string node;  // where it came from, for Errors
};

// Scores of attention, q K^T, before and after the softmax.
struct Scores {
  int q = 0, k = 0;  // items
  int64_t heads = 1, kv_heads = 1, head_dim = 1, time = 1;
  double scale = 1;
  bool causal = false, softmax = false;
  int64_t window = 0;
};

// scale * value + shift per value of one axis, and where both come from.
struct AffineParts {
  enum class From : uint8_t { weights, numbers, statistics };
  From from = From::numbers;
  bool scales = false, shifts = false;  // what the graph has, also if it is all 1 or all 0
  bool exact = false;                   // one of the two, and it is a tensor of the file as it is
  std::vector<float> scale, shift;
};

struct PatternValue : ImportValue {
  int item = -1;  // a stream
  OnnxView view;
  ExprRef f;             // null: the item itself
  bool reduced = false;  // the last axis is 1: f is the same for a whole row
  std::shared_ptr<const Scores> scores;
};

class Lowering final : private Importer {
 public:
  Lowering(const OnnxModel& model, const std::string& where, const OnnxImportOptions& options,
           int64_t open_batch = kOpenBatch)
      : Importer(model, where, options, open_batch) {}
  using Importer::depends_on_batch, Importer::refusal;
  Result<ImportedNetwork> run();

 private:
  using Handler = Status (Lowering::*)(const OnnxNode&);
  struct HandlerRow {
    std::string_view op;
    Handler handle;
  };
  static std::span<const HandlerRow> handlers();

  // lower.cpp
  Status check_opset();
  Status read_input();
  Status check_default(const OnnxValue& v, const OnnxTensor& tensor) const;
  Status node(const OnnxNode& n);
  const ImportValue* find(const std::string& name) const override;
  std::vector<int64_t> extents(const ImportValue& computed) const override;
  Status define_constant(const OnnxNode& n, ImportValue value) override;
  Status define_same(const OnnxNode& n) override;
  Status reshape(const OnnxNode& n) override;
  Status transpose(const OnnxNode& n, const std::vector<int64_t>& order) override;
  Status expand(const OnnxNode& n, const std::vector<int64_t>& to) override;
  Status cast(const OnnxNode& n, OnnxType from, OnnxType to) override;

  // lower_layers.cpp
  Status gemm(const OnnxNode& n, const OnnxGemm& args) override;
  Status matmul(const OnnxNode& n) override;
  Status conv(const OnnxNode& n, OnnxConv args) override;
  Status pool_node(const OnnxNode& n);
  Status pool(const OnnxNode& n, int from, const OnnxWindow& window);
  Status shaped(const OnnxNode& n, const Constant& c, const std::vector<int64_t>& dims,
                std::string_view what) const;
  Status normalize(const OnnxNode& n, const OnnxBatchNorm& args) override;
  Status norm_node(const OnnxNode& n);
  Status softmax(const OnnxNode& n, int64_t axis, bool log) override;
  Status look_up(const OnnxNode& n, int64_t axis) override;
  Status pick(const OnnxNode& n, int64_t axis, const Constant& indices) override;
  Status slice(const OnnxNode& n, OnnxSlice args) override;
  Status last_step(const OnnxNode& n, const PatternValue& x, bool keep_axis);
  Status recurrent(const OnnxNode& n, const OnnxRecurrence& args) override;
  Status concat(const OnnxNode& n, int64_t axis) override;
  // weight: [out, in]. bias: without values, none.
  Result<PatternValue> dense(const OnnxNode& n, const PatternValue& x, ItemParam weight,
                             ItemParam bias);

  // lower_functions.cpp
  Status unary_node(const OnnxNode& n);
  Status gelu(const OnnxNode& n, bool by_tanh) override;
  Status binary_node(const OnnxNode& n);
  Status where(const OnnxNode& n) override;
  Result<bool> normalizes(const OnnxNode& n);
  Status mean_node(const OnnxNode& n);
  Result<PatternValue> stream_pair(const OnnxNode& n, const PatternValue& a, const PatternValue& b);
  Result<PatternValue> with_constant(const OnnxNode& n, const PatternValue& x, const Constant& c,
                                     bool first);
  Result<PatternValue> affine(const OnnxNode& n, const PatternValue& x, const Constant& c,
                              bool first);
  Result<PatternValue> add_streams(const OnnxNode& n, const PatternValue& a, const PatternValue& b);
  Result<PatternValue> gate(const OnnxNode& n, const PatternValue& a, const PatternValue& b);
  Result<int> made_affine(const OnnxNode& n, int item, int axis, AffineParts by);
  // The item that computes the stream: functions become items.
  Result<int> materialise(const OnnxNode& n, const PatternValue& x);
  Result<int> function_item(const OnnxNode& n, int item, const ExprRef& f);

  // lower_attention.cpp
  Result<PatternValue> scores(const OnnxNode& n, const PatternValue& q, const PatternValue& k);
  Result<PatternValue> attend(const OnnxNode& n, const PatternValue& p, const PatternValue& v);
  Result<PatternValue> scores_with(const OnnxNode& n, const PatternValue& s, const Constant& c);
  Result<int> projection(const OnnxNode& n, const PatternValue& x, double& scale) const;

  Result<const PatternValue*> value(const OnnxNode& n, size_t i) const;
  Result<ConstantRef> read_weights(const OnnxNode& n, size_t i) override;
  Status define(const OnnxNode& n, PatternValue value, size_t output = 0);
  // A stream whose memory is what the graph sees, as a new item reads it: its last axis is
  // `width` in both.
  Result<int> rows(const OnnxNode& n, const PatternValue& x, int64_t width);
  // The same for a stream that is exactly the item's shape.
  Result<int> rows_of_item(const OnnxNode& n, const PatternValue& x);
  // An item whose samples have the extents `dims` after the batch: the same, or a new one after it.
  Result<int> shaped(const OnnxNode& n, int item, const std::vector<int64_t>& dims);
  // Adds an item; its shape follows from its layer.
  Result<int> add(const OnnxNode& n, Item item);
  Item layer_item(LayerConfig layer, int source) const;
  PatternValue stream(int item, const std::vector<int64_t>& dims) const;
  Result<PatternValue> view_as(const OnnxNode& n, int item, std::vector<int64_t> dims) const;

  int64_t unlearned_ = 0;  // values of layers that are not weights of the file
  Normalization normalization_;
  std::string normalized_;  // the value that is the input with normalization_ applied
  std::vector<Item> items_;
  std::map<std::string, PatternValue, std::less<>> values_;
  std::map<std::pair<int, ExprRef>, int> functions_;
};

// The grid of the items that `last` needs.
Result<ImportedNetwork> grid_of(std::vector<Item> items, int last, const Shape& sample);

// Whether the item is a product with weights, which takes an activation: a Dense or a convolution.
bool is_product(const Item& item);
LayerConfig with_field(LayerConfig layer, std::string_view name, double value);
// A layer that computes scale * value + shift along an axis (1, or -1: the last), with made-up
// weights. Errors: too wide.
Result<Item> affine_item(const Shape& in, const Item& affine);

}  // namespace loom::core
