// Reads the nodes of an ONNX graph for both importers: constants, refusals, attributes with their
// defaults. An operator that both importers have is read here once. The importer that runs gets the
// arguments: Lowering (lower/lower.hpp) finds layers for them, GraphImport (general/general.hpp)
// adds nodes of a Graph. Room-private.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/core/layer.hpp"
#include "onnx/import/import.hpp"
#include "onnx/import/item.hpp"
#include "onnx/import/one_sample.hpp"
#include "onnx/import/origins.hpp"
#include "onnx/import/schema.hpp"
#include "onnx/import/values.hpp"

namespace loom::core {

// The batch if the file leaves it open: primes that no other extent has. If both give one network,
// it does not depend on the batch.
constexpr int64_t kOpenBatch = 7919, kOtherBatch = 7907;

// A value of the graph: known while reading, or computed.
struct ImportValue {
  ConstantRef constant;                // or
  const OnnxTensor* tensor = nullptr;  // an initializer not read yet; if neither: computed
  OnnxType type = OnnxType::f32;       // as the graph says
  int64_t source = 0;  // of a constant: the number of its source in the file. 0 if it has none
  bool is_constant() const { return constant != nullptr || tensor != nullptr; }
};

struct OnnxGemm {
  double alpha = 1, beta = 1;
  bool transpose_a = false, transpose_b = false;
};

struct OnnxSlice {
  std::vector<int64_t> starts, ends, axes, steps;
};

// If the statistics are computed by the graph, the constants are null.
struct OnnxBatchNorm {
  ConstantRef gamma, beta, mean, variance;
  double eps = 0;
  double momentum = 0;               // the weight of a new batch
  std::vector<double> scale, shift;  // per channel: y = scale x + shift
};

// A window over the positions of a convolution or a pool, one number per axis. `begin` and `end`
// are the padding at both ends.
struct OnnxWindow {
  std::vector<int64_t> kernel, stride, begin, end, dilation;
  bool automatic = false;  // the padding follows from the extents of the input
};

struct OnnxConv {
  bool transposed = false;
  OnnxWindow window;
  std::vector<int64_t> output_padding;
  int64_t groups = 1, filters = 0;
  ConstantRef weight, bias;  // bias may be null

  LayerKind kind() const;
  // Those of a layer whose padding is `window.begin` at both ends.
  std::vector<Field> fields(int64_t channels) const;
  Shape weight_shape() const;
};

// The gates of a recurrence: their number, and their order in the file.
struct OnnxGates {
  std::string_view function;  // of the operator's layer
  LayerKind kind{};
  std::span<const size_t> order;  // for each gate of the layer: its position in the file
};

struct OnnxRecurrence {
  const OnnxGates* gates = nullptr;
  int64_t in = 0, hidden = 0, time = 0;
  size_t ways = 1;          // directions
  bool backwards = false;   // the only direction is backwards
  std::string activation;   // of an RNN
  bool two_biases = false;  // the state has one of its own
  int trained_half = -1;    // Origins::trained_half of the biases
  std::vector<float> w, r, biases;

  // The number of rows of all gates.
  int64_t rows() const { return static_cast<int64_t>(gates->order.size()) * hidden; }
  std::vector<Field> fields() const;
  bool has_cell() const;  // a state besides the output
  // Whether the layer has a second bias, if only zeros.
  bool has_state_bias() const;
  // Parameters of one direction in the order of the layer's gates.
  std::vector<float> input_weights(size_t way) const;
  std::vector<float> state_weights(size_t way) const;
  std::vector<float> bias(size_t way, bool of_state) const;
};

class Importer {
 public:
  // Why the import failed.
  Refusal refusal() const { return refusal_; }
  // Whether the network may depend on the size of an open batch, so that it has to be compared with
  // the network for another size.
  bool depends_on_batch() const { return depends_on_batch_; }

 protected:
  Importer(const OnnxModel& model, const std::string& where, const OnnxImportOptions& options,
           int64_t open_batch)
      : model_(model),
        where_(where),
        options_(options),
        open_batch_(open_batch),
        origins_(model, options) {}
  ~Importer() = default;

  // ---- the importer: operators with their arguments ----
  // May be null: no node before it makes the value.
  virtual const ImportValue* find(const std::string& name) const = 0;
  // The extents of a computed value, as the graph sees them.
  virtual std::vector<int64_t> extents(const ImportValue& computed) const = 0;
  // Output 0 is this constant, or the value of input 0.
  virtual Status define_constant(const OnnxNode& n, ImportValue value) = 0;
  virtual Status define_same(const OnnxNode& n) = 0;
  virtual Result<ConstantRef> read_weights(const OnnxNode& n, size_t i) { return constant(n, i); }
  // ImportValue::source of a constant that is folded.
  virtual int64_t folded_source(const OnnxNode&) { return 0; }
  virtual void add_own_operators(std::vector<std::string>&) const {}
  // A cast that keeps values of `from` in every case is a define_same().
  virtual Status cast(const OnnxNode& n, OnnxType from, OnnxType to) = 0;
  virtual Status reshape(const OnnxNode& n) = 0;  // of a computed value
  virtual Status transpose(const OnnxNode& n, const std::vector<int64_t>& order) = 0;
  virtual Status expand(const OnnxNode& n, const std::vector<int64_t>& to) = 0;
  virtual Status slice(const OnnxNode& n, OnnxSlice args) = 0;
  virtual Status concat(const OnnxNode& n, int64_t axis) = 0;
  // Rows of the constant input 0 by computed indices; computed values by constant indices.
  virtual Status look_up(const OnnxNode& n, int64_t axis) = 0;
  virtual Status pick(const OnnxNode& n, int64_t axis, const Constant& indices) = 0;
  virtual Status gelu(const OnnxNode& n, bool by_tanh) = 0;
  virtual Status where(const OnnxNode& n) = 0;
  virtual Status softmax(const OnnxNode& n, int64_t axis, bool log) = 0;
  virtual Status matmul(const OnnxNode& n) = 0;
  virtual Status gemm(const OnnxNode& n, const OnnxGemm& args) = 0;
  virtual Status conv(const OnnxNode& n, OnnxConv args) = 0;
  virtual Status normalize(const OnnxNode& n, const OnnxBatchNorm& args) = 0;
  virtual Status recurrent(const OnnxNode& n, const OnnxRecurrence& args) = 0;

  // ---- importer.cpp ----
  using Reader = Status (Importer::*)(const OnnxNode&);
  struct ReaderRow {
    std::string_view op;
    Reader read;
  };
  // Operators that both importers have, by the kind of the layer that their row names.
  static std::span<const ReaderRow> readers();
  Error refuse(const OnnxNode& n, std::string_view reason) const;
  Error refused(std::string_view message) const;  // which names its node
  // Counts values that are copied or made, so that a small file never becomes a huge network.
  Status spend(const OnnxNode& n, int64_t values);
  bool has_input(const OnnxNode& n, size_t i) const {
    return i < n.inputs.size() && !n.inputs[i].empty();
  }
  Result<const ImportValue*> input(const OnnxNode& n, size_t i) const;
  // Whether all inputs are constants, of at least one.
  Result<bool> all_known(const OnnxNode& n) const;
  // Whether input i holds weights. Functions of weights do where they are folded for predictions.
  bool learns(const OnnxNode& n, size_t i) const;
  Result<ConstantRef> constant(const OnnxNode& n, size_t i);
  // The same for a reader that knows both forms of a constant that depends on the batch.
  Result<ConstantRef> constant_of_both(const OnnxNode& n, size_t i);
  // A list of integers: input i if it is present, otherwise the attribute.
  Result<std::vector<int64_t>> list(const OnnxNode& n, size_t i, std::string_view attribute,
                                    std::vector<int64_t> otherwise);
  // The extents of input i, known or computed.
  Result<std::vector<int64_t>> extents_of(const OnnxNode& n, size_t i) const;
  // The attribute "axis", counted from the front.
  Result<int64_t> axis_of(const OnnxNode& n, int64_t otherwise, size_t rank) const;
  // The type of output 0, after a comparison of the node with the signature of its operator.
  Result<OnnxType> checked(const OnnxNode& n) const;
  Status fold_node(const OnnxNode& n);
  // The extents that a Reshape, Flatten, Squeeze or Unsqueeze makes of `have`.
  Result<std::vector<int64_t>> reshaped(const OnnxNode& n, const std::vector<int64_t>& have);

  // Whether the node is a Cast to the type of another input: cast_of() is that Cast.
  static bool is_cast_like(const OnnxNode& n) { return layer_of(n.op).kind == "cast_like"; }

  // ---- batch.cpp ----
  bool has_two_batches() const { return open_batch_ == kOpenBatch && batch_ == kOpenBatch; }
  // An extent for kOtherBatch samples.
  int64_t other_extent(int64_t extent) const;
  std::vector<int64_t> other_extents(std::vector<int64_t> dims) const;
  // Whether it differs for another batch in multiples of the batch alone.
  bool follows_batch(const Constant& c) const;
  // Sets made.other.
  void note_other(Constant& made, Result<Constant> other);
  // Compares the shapes that a layer gives for both sizes of the batch.
  void compare_layer(const LayerConfig& layer, std::span<const ItemParam> params,
                     std::span<const Shape> in, std::span<const Shape> out);

  // ---- operators.cpp ----
  Status read_constant(const OnnxNode& n);
  Status read_shape(const OnnxNode& n);
  Status read_same(const OnnxNode& n);
  Status read_cast(const OnnxNode& n);
  Status read_view(const OnnxNode& n);
  Status read_transpose(const OnnxNode& n);
  Status read_expand(const OnnxNode& n);
  Status read_slice(const OnnxNode& n);
  Status read_concat(const OnnxNode& n);
  Status read_gather(const OnnxNode& n);
  Status read_gelu(const OnnxNode& n);
  Status read_softmax(const OnnxNode& n);
  Status read_gemm(const OnnxNode& n);

  // ---- windows.cpp ----
  Result<OnnxWindow> window(const OnnxNode& n, const std::vector<int64_t>& in,
                            std::vector<int64_t> kernel) const;
  Status read_conv(const OnnxNode& n);
  Status read_batch_norm(const OnnxNode& n);

  // ---- recurrent.cpp ----
  Status read_recurrent(const OnnxNode& n);
  Status check_recurrent(const OnnxNode& n, const OnnxRecurrence& args);

  const OnnxModel& model_;
  const std::string& where_;
  const OnnxImportOptions& options_;
  const int64_t open_batch_;
  const Origins origins_;
  Refusal refusal_ = Refusal::other;
  bool depends_on_batch_ = false;
  int64_t opset_ = 0, batch_ = 1;
  int64_t left_ = 0;     // values that may still be made
  int64_t sources_ = 0;  // numbers of sources that are in use
  Shape sample_;
  bool ids_ = false;                 // the input holds ids
  OnnxType result_ = OnnxType::f32;  // of the node under way
  std::string input_name_;
};

// A message with shapes: an open batch as the reader knows it, not by the number that stands for it
// here.
std::string with_open_batch(std::string_view reason, int64_t batch);

// Attributes, or the default when they are absent.
double attribute_real(const OnnxNode& node, std::string_view name, double otherwise);
std::string attribute_text(const OnnxNode& node, std::string_view name, std::string otherwise);
std::vector<int64_t> attribute_list(const OnnxNode& node, std::string_view name,
                                    std::vector<int64_t> otherwise);

bool is_recurrent(LayerKind kind);
bool is_convolution(LayerKind kind);
bool is_transposed_convolution(LayerKind kind);

}  // namespace loom::core
