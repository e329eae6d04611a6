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
  double factor = 1.0;  // of the initial values
  Shape table;          // the extents of a vector that represents a tensor; empty means its own
  bool matrix() const { return shape.rank() == 2; }
};

// The position data that a layer needs: the angles of a rotary embedding, or position numbers as
// ids. Equal specs share one table.
struct RopeSpec {
  int64_t width = 0;    // rotated values per head
  int64_t numbers = 0;  // above 0: no angles, but this many positions 0, 1, 2, ... as ids
  double theta = 10000.0;
  std::string scaling;  // "", "linear", "llama3"
  double factor = 1.0, low_freq = 1.0, high_freq = 4.0;
  int64_t original_positions = 8192;
  bool operator==(const RopeSpec&) const = default;
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
  Tensor turned;
};

class ForwardCall;  // layers/core/forward_call.hpp

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
  // Shape of the output for an input shape; the Error names the wrong extent.
  Result<Shape> (*infer)(const LayerConfig&, const Shape&) = nullptr;
  // Records the ops of one pass and returns the output.
  Result<Tensor> (*forward)(ForwardCall&) = nullptr;
  // For kinds of several inputs or outputs, which are used in a Graph: the number of inputs, and
  // infer_all, which replaces infer. A kind with several outputs has forward_all, which replaces
  // forward.
  int min_inputs = 1, max_inputs = 1;
  Result<std::vector<Shape>> (*infer_all)(const LayerConfig&, std::span<const Shape>) = nullptr;
  Result<std::vector<Tensor>> (*forward_all)(ForwardCall&) = nullptr;
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

// Shape of the output of a layer, children included; disabled layers pass their input on.
Result<Shape> infer_shape(const LayerConfig& layer, const Shape& in);
// The same for a layer after others: `skip` is the input of the layer before it. Validates layers
// that take it.
Result<Shape> infer_after(const LayerConfig& layer, const Shape& in, const Shape& skip);
// The same for a layer of any number of inputs: the shapes of all its outputs. A layer that takes a
// second input gets x and skip.
Result<std::vector<Shape>> infer_all(const LayerConfig& layer, std::span<const Shape> in);
// Every output of the layer of `call`.
Result<std::vector<Tensor>> forward_all(ForwardCall& call);
// The same for the last layer of a network, whose outputs may be several.
Result<std::vector<Shape>> infer_all_after(const LayerConfig& layer, const Shape& in,
                                           const Shape& skip);
bool wants_skip(const LayerConfig& layer);
// Whether the layer, or the first enabled child that sees its input, takes 32-bit ids.
bool takes_ids(const LayerConfig& layer);

// The memory of t, which must be contiguous, as a matrix of other extents.
Tensor as_matrix(const Tensor& t, int64_t rows, int64_t cols);
// Columns [first, first + count) of a matrix.
Tensor slice_cols(const Tensor& t, int64_t first, int64_t count);
// Step `i` of every sequence: t [sequences * length, width] -> [sequences, width].
Tensor step_rows(const Tensor& t, int64_t sequences, int64_t i);

}  // namespace loom::core
