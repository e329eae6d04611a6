// The walk over the nodes of an ONNX graph that finds its layers. Values are those of
// values.hpp; layers are Items, each reading others, in an order in which all that an item
// reads stands before it. finish() makes a grid of them (grid.cpp). Room-private.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/import/import.hpp"
#include "onnx/import/one_sample.hpp"
#include "onnx/import/origins.hpp"
#include "onnx/import/schema.hpp"
#include "onnx/import/values.hpp"

namespace loom::core {

// The batch, where the file leaves it open: primes that no other extent has. What is the same
// network with both does not depend on the batch.
constexpr int64_t kOpenBatch = 7919, kOtherBatch = 7907;

using Weights = std::shared_ptr<const std::vector<float>>;
inline Weights shared(std::vector<float> values) {
  return std::make_shared<const std::vector<float>>(std::move(values));
}

struct ItemParam {
  std::string path;  // below the item: "weight", "0/gamma"
  Shape shape;
  Weights values;
  // Not the values of one tensor of the file: training would learn another network.
  bool made_up = false;
  // Made up, all 1 or all 0, in the place of a weight that a later node may bring.
  bool neutral = false;
  bool frozen = false;  // no weight of the file: training leaves it as it is
};

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

struct PatternValue {
  ConstantRef constant;                // or
  const OnnxTensor* tensor = nullptr;  // an initializer not read yet; or
  int item = -1;                       // a stream
  OnnxView view;
  ExprRef f;                      // null: the item itself
  bool reduced = false;           // the last axis is 1: f is the same for a whole row
  OnnxType type = OnnxType::f32;  // of a stream, as the graph says
  std::shared_ptr<const Scores> scores;

  bool is_constant() const { return constant != nullptr || tensor != nullptr; }
  OnnxType holds() const {
    return constant != nullptr ? constant->type : tensor != nullptr ? tensor->type : type;
  }
};

// What slides over the positions of a convolution or a pool: one number per axis.
struct OnnxWindow {
  std::vector<int64_t> kernel, stride, pad, dilation;
};

class Lowering {
 public:
  Lowering(const OnnxModel& model, const std::string& where, const OnnxImportOptions& options,
           int64_t open_batch = kOpenBatch)
      : model_(model),
        where_(where),
        options_(options),
        open_batch_(open_batch),
        origins_(model, options) {}
  Result<ImportedNetwork> run();
  // Why run() failed.
  Refusal refusal() const { return refusal_; }

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
  // What the node gives, after a look at all that it asks for.
  Result<OnnxType> checked(const OnnxNode& n) const;
  Status constant_node(const OnnxNode& n);
  Status shape_node(const OnnxNode& n);
  Status view_node(const OnnxNode& n);
  Status same_node(const OnnxNode& n);
  Status check_dropout(const OnnxNode& n);
  Status check_cast(const OnnxNode& n, OnnxType from) const;
  Result<std::vector<int64_t>> target_dims(const OnnxNode& n, const std::vector<int64_t>& have);

  // lower_layers.cpp
  Status gemm_node(const OnnxNode& n);
  Status matmul_node(const OnnxNode& n);
  Status conv_node(const OnnxNode& n);
  Status pool_node(const OnnxNode& n);
  Status pool(const OnnxNode& n, int from, const OnnxWindow& window);
  Result<OnnxWindow> window(const OnnxNode& n, std::vector<int64_t> kernel) const;
  Status shaped(const OnnxNode& n, const Constant& c, const std::vector<int64_t>& dims,
                std::string_view what) const;
  Status batch_norm_node(const OnnxNode& n);
  Status norm_node(const OnnxNode& n);
  Status softmax_node(const OnnxNode& n);
  Status gather_node(const OnnxNode& n);
  Status slice_node(const OnnxNode& n);
  Status last_step(const OnnxNode& n, const PatternValue& x, bool keep_axis);
  Status recurrent_node(const OnnxNode& n);
  Status concat_node(const OnnxNode& n);
  // weight: [out, in]. bias: without values, none.
  Result<PatternValue> dense(const OnnxNode& n, const PatternValue& x, ItemParam weight,
                             ItemParam bias);

  // lower_functions.cpp
  Status unary_node(const OnnxNode& n);
  Status gelu_node(const OnnxNode& n);
  Status binary_node(const OnnxNode& n);
  Status where_node(const OnnxNode& n);
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

  // Counts values that are copied or made, so that a small file never becomes a huge network.
  Status spend(const OnnxNode& n, int64_t values);
  // Inputs and outputs of nodes.
  Error refuse(const OnnxNode& n, std::string_view reason) const;
  Error refused(std::string_view message) const;  // which names its node
  Result<const PatternValue*> input(const OnnxNode& n, size_t i) const;
  bool has_input(const OnnxNode& n, size_t i) const {
    return i < n.inputs.size() && !n.inputs[i].empty();
  }
  Result<ConstantRef> constant(const OnnxNode& n, size_t i);
  // A list of whole numbers: axes, extents, places.
  Result<std::vector<int64_t>> list(const OnnxNode& n, size_t i);
  // The same where all its values will be kept.
  bool learns(const OnnxNode& n, size_t i) const;
  Result<ConstantRef> weights(const OnnxNode& n, size_t i);
  Status define(const OnnxNode& n, PatternValue value, size_t output = 0);
  // A stream whose memory is what the graph sees, as a new item reads it: its last axis is
  // `width` in both.
  Result<int> rows(const OnnxNode& n, const PatternValue& x, int64_t width);
  // The same for a stream that is exactly the item's shape.
  Result<int> rows_of_item(const OnnxNode& n, const PatternValue& x);
  // An item whose samples have the extents `dims` behind the batch: the same, or one behind it.
  Result<int> shaped(const OnnxNode& n, int item, const std::vector<int64_t>& dims);
  // Adds an item; its shape follows from its layer.
  Result<int> add(const OnnxNode& n, Item item);
  Item layer_item(LayerConfig layer, int source) const;
  PatternValue stream(int item, const std::vector<int64_t>& dims) const;
  Result<PatternValue> view_as(const OnnxNode& n, int item, std::vector<int64_t> dims) const;

  const OnnxModel& model_;
  const std::string& where_;
  const OnnxImportOptions& options_;
  const int64_t open_batch_;
  Refusal refusal_ = Refusal::other;
  const Origins origins_;
  int64_t unlearned_ = 0;  // values of layers that are no weights of the file
  int64_t batch_ = 1, opset_ = 0;
  OnnxType result_ = OnnxType::f32;  // of the node under way
  int64_t left_ = 0;                 // values that may still be made
  Shape sample_;
  bool ids_ = false;
  std::string input_name_;
  Normalization normalization_;
  std::string normalized_;  // the value that is the input with normalization_ applied
  std::vector<Item> items_;
  std::map<std::string, PatternValue, std::less<>> values_;
  std::map<std::pair<int, ExprRef>, int> functions_;
};

// The grid of the items that `last` needs.
Result<ImportedNetwork> grid_of(std::vector<Item> items, int last, const Shape& sample);

// A message with shapes: an open batch as the reader knows it, not by the number that stands for it
// here.
std::string with_open_batch(std::string_view reason, int64_t batch);

// Attributes, or what is said when they are absent.
double attribute_real(const OnnxNode& node, std::string_view name, double otherwise);
std::string attribute_text(const OnnxNode& node, std::string_view name, std::string otherwise);
std::vector<int64_t> attribute_list(const OnnxNode& node, std::string_view name,
                                    std::vector<int64_t> otherwise);

// lower_sequence.cpp: recurrences by their operators
struct ImportGates {
  std::string_view function;  // of the operator's layer
  LayerKind kind;
  std::vector<size_t> order;  // which of theirs stands where
};
std::vector<ImportGates> gate_table();
// Blocks of [first, first + order.size() * block), in the order.
std::vector<float> reordered(const std::vector<float>& all, size_t first, size_t block,
                             const std::vector<size_t>& order);
// Whether a state has a bias: biases of each direction are `count` of the input, then of the state.
bool has_second_bias(const std::vector<float>& biases, size_t count);
// The activation of an RNN by the name ONNX has for it; "" when it is none of ours.
std::string rnn_activation(const OnnxNode& n);

LayerConfig with_field(LayerConfig layer, std::string_view name, double value);
// A layer that computes scale * value + shift along an axis (1, or -1: the last), with made-up
// weights. Errors: too wide.
Result<Item> affine_item(const Shape& in, const Item& affine);

}  // namespace loom::core
