// LayerDef: the description of a layer kind. There is one constant object per file of this room. A
// layer sees tensors and ops, but no dtype, device, thread or file. It is written once, as
// forward(): ops define gradients, and memory is planned from the recorded commands
// (docs/decisions/0008). So forward() requests its tensors in an order that depends only on the
// configuration, for any number of steps, and writes none of them twice. Drivers are in grid/;
// containers call back through ForwardCall::child.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/core/config.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

// Initial values. Fans are those of the matrix: rows out, cols in.
//   glorot: U(+-sqrt(6 / (in + out))) (Glorot and Bengio, 2010); he: N(0, 2 / in) (He et al.,
//   2015); fan_in: U(+-1/sqrt(in)); fan_out: U(+-1/sqrt(out)); normal002: N(0, 0.02^2); normal1:
//   N(0, 1).
// Tables depend on the index of a value in ParamSpec::table; they serve buffers and first values:
//   sinusoidal [T, W]: sin(t / 10000^(2k / W)) at 2k, the cosine at 2k + 1 (Vaswani et al., 2017);
//   alibi [H, T, S]: -slope_h |t - s| (Press, Smith and Lewis, 2022); causal [T, S]: 0 up to s = t,
//   then -1e9; log_range [N]: log(n + 1) (Gu et al., 2022).
enum class Init : uint8_t {
  zeros,
  ones,
  glorot,
  he,
  fan_in,
  fan_out,
  normal002,
  normal1,
  sinusoidal,
  alibi,
  causal,
  log_range
};

// A tensor of a layer that files hold. Matrices [rows, cols] are stored as R16 in any dtype;
// vectors stay plain f32.
struct ParamSpec {
  std::string_view name;
  Shape shape;
  Init init = Init::zeros;
  // false: a buffer, which is a vector without a gradient. Only ForwardCall::keep() changes it in
  // training (docs/decisions/0028).
  bool trained = true;
  double factor = 1.0;   // of the initial values
  Shape table;           // the extents of a vector that represents a tensor; empty means its own
  bool product = false;  // used by ForwardCall::product() alone, so it can have adapters
  bool matrix() const { return shape.rank() == 2; }
};

// A weight of ForwardCall::product().
inline ParamSpec product_weight(std::string_view name, const Shape& shape,
                                Init init = Init::glorot) {
  ParamSpec spec{name, shape, init};
  spec.product = true;
  return spec;
}

// The position data that a layer needs: the angles of a rotary embedding, the slopes of ALiBi, or
// position numbers as ids. Equal specs share one table.
struct RopeSpec {
  int64_t width = 0;    // rotated values per head
  int64_t numbers = 0;  // above 0: no angles, but this many positions 0, 1, 2, ... as ids
  double theta = 10000.0;
  std::string scaling;  // "", "linear", "llama3", "yarn", "dynamic", "longrope"
  double factor = 1.0, low_freq = 1.0, high_freq = 4.0;
  int64_t original_positions = 8192;
  double attention = 1.0;                    // factor of cosines and sines
  double beta_fast = 32.0, beta_slow = 1.0;  // yarn
  bool truncate = true;                      // yarn
  std::string short_factors, long_factors;   // longrope: width / 2 numbers, separated by spaces
  int64_t slopes = 0;                        // above 0: as many slopes of ALiBi
  double alibi = 8.0;                        // the exponent of the smallest slope
  double alibi_scale = 1;                    // factor of the slopes
  bool operator==(const RopeSpec&) const = default;
};

// Tables of a RopeSpec: the angles of rotary embeddings, slopes, or numbers 0, 1, 2, ... as ids.
struct PositionTable {
  Tensor cos, sin;  // [positions, width / 2]
  Tensor slopes;    // [slopes]
  Tensor numbers;   // [positions], i32
};

// Memory that a layer keeps between passes of a session, per sequence: a KV cache (kv_heads > 0),
// or a vector that is zero at position 0 (width > 0).
struct StateSpec {
  int64_t kv_heads = 0, head_dim = 0, width = 0;
};

// An additional input of the network. `shape` is that of one sample, or of the whole tensor if all
// samples of a batch share it.
struct InputSpec {
  std::string name;
  Shape shape;
  bool batched = true;
  int64_t ids = 0;  // above 0: integers below it, as an Embedding takes
  bool operator==(const InputSpec&) const = default;
  Shape batch(int64_t samples) const { return batched ? shape.after(samples) : shape; }
  DType dtype(DType numbers) const { return ids > 0 ? DType::i32 : numbers; }
};

// The ends of the sequences of a batch, as rows of [sequences, length] contiguous positions; i32.
struct SequenceEnds {
  Tensor last;  // [sequences]: the last real position of each
  // [sequences * length]: the source of each position after reversing every sequence; positions
  // after its end stay.
  Tensor reversed;
};

class ForwardCall;  // layers/core/forward_call.hpp

// All outputs of a layer, at least one. A single output needs no allocation.
class LayerOutputs {
 public:
  LayerOutputs(const Tensor& only) : first_(only) {}
  LayerOutputs(std::vector<Tensor> all) : first_(all.front()), list_(std::move(all)) {}
  std::span<const Tensor> all() const {
    return list_.empty() ? std::span(&first_, 1) : std::span<const Tensor>(list_);
  }
  size_t size() const { return all().size(); }
  const Tensor& operator[](size_t i) const { return all()[i]; }

 private:
  Tensor first_;
  std::vector<Tensor> list_;  // empty for one output
};

// Shape inference of a kind, from all input shapes to all output shapes. A kind that reads one
// shape and has one output registers a function of one shape. Errors name the wrong extent.
class InferRule {
 public:
  using One = Result<Shape>(const LayerConfig&, const Shape&);
  using List = Result<std::vector<Shape>>(const LayerConfig&, std::span<const Shape>);
  constexpr InferRule() = default;
  constexpr InferRule(One* one) : one_(one) {}
  constexpr InferRule(List* list) : list_(list) {}
  Result<std::vector<Shape>> operator()(const LayerConfig& layer, std::span<const Shape> in) const;
  bool defined() const { return one_ != nullptr || list_ != nullptr; }
  bool reads_list() const { return list_ != nullptr; }

 private:
  One* one_ = nullptr;
  List* list_ = nullptr;
};

// The recording of one pass of a kind. A kind with one output registers a function that returns it.
class ForwardRule {
 public:
  using One = Result<Tensor>(ForwardCall&);
  using List = Result<std::vector<Tensor>>(ForwardCall&);
  constexpr ForwardRule() = default;
  constexpr ForwardRule(One* one) : one_(one) {}
  constexpr ForwardRule(List* list) : list_(list) {}
  Result<LayerOutputs> operator()(ForwardCall& call) const;
  bool defined() const { return one_ != nullptr || list_ != nullptr; }

 private:
  One* one_ = nullptr;
  List* list_ = nullptr;
};

// A compact description of a layer: the arguments of make_layer().
struct LayerSketch {
  LayerKind kind;
  std::vector<Field> fields = {};
  std::vector<LayerSketch> children = {};
};
LayerSketch sketch_dense(int64_t in, int64_t out, std::string_view activation = "linear");

// A small sequential network in which a kind uses all of its features: biases, groups, strides,
// children. Its extents are odd, so no vector is full. If the output of the kind could not be
// trained (norms, probabilities), Dense layers surround it.
struct LayerExample {
  Shape input;  // of one sample
  std::vector<LayerSketch> layers;
  int64_t batch = 8;
};

struct LayerDef {
  LayerKind kind;
  std::string_view name;
  std::span<const FieldDesc> fields;
  bool container = false;
  bool wired = false;      // a container whose children name their inputs: layers/core/graph.hpp
  bool takes_ids = false;  // its input is 32-bit ids
  // A row of its output depends only on the same row of its input and, if it looks further, on
  // places(). So rows of several sequences can share a pass. A container has it if its children do.
  bool ragged = false;
  // The parameters of a layer with this configuration, in a fixed order.
  void (*params)(const LayerConfig&, std::vector<ParamSpec>&) = nullptr;
  InferRule infer;
  ForwardRule forward;
  int min_inputs = 1, max_inputs = 1;                // above 1: the kind is used in a Graph
  StateSpec (*state)(const LayerConfig&) = nullptr;  // may be null: none
  RopeSpec (*rope)(const LayerConfig&) = nullptr;    // may be null: none
  InputSpec (*input)(const LayerConfig&) = nullptr;  // may be null: no network input
  // Takes a second input of the shape of its first: the input of the layer before it. May be null:
  // never.
  bool (*wants_skip)(const LayerConfig&) = nullptr;
  // Only for blocks (blocks.hpp): makes the layer of other kinds that it stands for.
  Result<LayerConfig> (*expand)(const LayerConfig&) = nullptr;
  // The network for tests, proofs and benches of every kind. Frozen for a released kind:
  // tests/golden/training.txt has hashes of it.
  LayerExample (*example)() = nullptr;
};

const LayerDef& layer_def(LayerKind kind);
std::span<const LayerDef* const> layer_table();
// The layers of a sketch or an example, in order. Errors: those of make_layer().
Result<std::vector<LayerConfig>> make_layers(const std::vector<LayerSketch>& sketches);

// The shapes of all outputs of a layer, children included; disabled layers pass their first input
// on. Errors: a wrong number of inputs, and those of InferRule.
Result<std::vector<Shape>> infer_all(const LayerConfig& layer, std::span<const Shape> in);
// The same for a layer of one input and one output.
Result<Shape> infer_shape(const LayerConfig& layer, const Shape& in);
// The same for a layer after others: `skip` is the input of the layer before it.
Result<Shape> infer_after(const LayerConfig& layer, const Shape& in, const Shape& skip);
bool wants_skip(const LayerConfig& layer);
// The inputs of a layer after others. values: its input, and the input of the layer before it.
template <class T>
std::span<const T> inputs_after(const LayerConfig& layer, const std::array<T, 2>& values) {
  return {values.data(), wants_skip(layer) ? size_t{2} : size_t{1}};
}
// Whether the layer, or the first enabled child that sees its input, takes 32-bit ids.
bool takes_ids(const LayerConfig& layer);

// The memory of t, which must be contiguous, as a matrix of other extents.
Tensor as_matrix(const Tensor& t, int64_t rows, int64_t cols);
// Columns [first, first + count) of a matrix.
Tensor slice_cols(const Tensor& t, int64_t first, int64_t count);
// Step `i` of every sequence: t [sequences * length, width] -> [sequences, width].
Tensor step_rows(const Tensor& t, int64_t sequences, int64_t i);

}  // namespace loom::core
