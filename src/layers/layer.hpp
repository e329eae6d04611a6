// LayerDef: what a layer kind is. One constant object per file of this room. A layer sees tensors
// and ops: no dtype, no device, no thread, no file. It is written once, as forward(): gradients
// belong to ops and memory is planned from what forward() records (docs/decisions/0008). So
// forward() asks for its tensors in an order that depends on the configuration alone (as many for
// one step as for a thousand), and writes none of them twice. Drivers are in grid/; containers call
// back through ForwardCall::child.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/config.hpp"
#include "ops/recorder.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

// Starting values. Fans are those of the matrix: rows out, cols in.
//   glorot: U(+-sqrt(6 / (in + out))) (Glorot and Bengio, 2010); he: N(0, 2 / in) (He et al.,
//   2015); fan_in: U(+-1/sqrt(in)); fan_out: U(+-1/sqrt(out)); normal002: N(0, 0.02^2); normal1:
//   N(0, 1)
// Tables, which the place of a value in ParamSpec::table decides; for buffers and first values:
//   sinusoidal [T, W]: sin(t / 10000^(2k / W)) at 2k, the cosine at 2k + 1 (Vaswani et al., 2017);
//   alibi [H, T, S]: -slope_h |t - s| (Press, Smith and Lewis, 2022); causal [T, S]: 0 up to s = t,
//   then -1e9; log_range [N]: log(n + 1) (Gu et al., 2022)
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

// One tensor of a layer that files hold. Matrices [rows, cols] are stored R16 in any dtype; vectors
// stay plain f32.
struct ParamSpec {
  std::string_view name;
  Shape shape;
  Init init = Init::zeros;
  // false: a buffer, a vector that has no gradient and that training moves by ForwardCall::keep()
  // alone (docs/decisions/0028).
  bool trained = true;
  double factor = 1.0;  // of the starting values
  Shape table;          // the extents of a vector that is a tensor of them; empty: its own
  bool matrix() const { return shape.rank() == 2; }
};

// What a layer wants to know of positions: the angles of a rotary embedding, or their numbers as
// ids. Equal specs share one table.
struct RopeSpec {
  int64_t width = 0;    // rotated values per head
  int64_t numbers = 0;  // above 0: no angles; positions 0, 1, 2, ... as ids, as many as there are
  double theta = 10000.0;
  std::string scaling;  // "", "linear", "llama3"
  double factor = 1.0, low_freq = 1.0, high_freq = 4.0;
  int64_t original_positions = 8192;
  bool operator==(const RopeSpec&) const = default;
};

// Memory a layer keeps between passes of a session, per sequence: a KV cache (kv_heads > 0), or a
// vector that is zero at position 0 (width > 0).
struct StateSpec {
  int64_t kv_heads = 0, head_dim = 0, width = 0;
};

// An input of the network besides its first. `shape` is that of one sample, or of the whole where
// all samples of a batch share it.
struct InputSpec {
  std::string name;
  Shape shape;
  bool batched = true;
  int64_t ids = 0;  // above 0: whole numbers below it, as an Embedding takes them
  bool operator==(const InputSpec&) const = default;
  Shape batch(int64_t samples) const { return batched ? shape.after(samples) : shape; }
  DType dtype(DType numbers) const { return ids > 0 ? DType::i32 : numbers; }
};

// Where the sequences of a batch end, as rows of [sequences, length] positions that follow each
// other; i32.
struct SequenceEnds {
  Tensor last;  // [sequences]: the last real position of each
  // [sequences * length]: what stands in each place once every sequence is turned round; what
  // follows its end stays.
  Tensor turned;
};

// Where a layer's random numbers come from: value i of stream (seed, stream) at step *step.
struct Noise {
  uint64_t seed = 0, stream = 0;
  Tensor step;
};

// One forward call. Shapes may be smaller than planned in every axis but the last.
class ForwardCall {
 public:
  virtual ~ForwardCall() = default;
  virtual Recorder& ops() = 0;
  virtual const LayerConfig& config() const = 0;
  virtual const Tensor& x() const = 0;
  // The second input of layers that want one (LayerDef::wants_skip).
  virtual const Tensor& skip() const = 0;
  // All inputs of a layer that takes several (LayerDef::most_inputs); x() is the first.
  virtual std::span<const Tensor> inputs() const = 0;
  // Memory of the compute type, contiguous, for as long as anything recorded reads it.
  virtual Result<Tensor> tensor(const Shape& shape) = 0;
  virtual const Tensor& param(size_t i) const = 0;  // in the order of LayerDef::params
  // Rows of x are `sequences` runs of equal length, one after the other; all stand at position
  // `first`.
  virtual int64_t sequences() const = 0;
  virtual int64_t first() const = 0;
  // Whether passes build on each other, so that cache() and state() hold what came before. If not,
  // x holds whole sequences and there is neither.
  virtual bool stateful() const = 0;
  virtual KvCache cache() = 0;  // of all sequences
  // Ragged passes (LayerDef::ragged): a RowPlace for each row of x, [R, 2]; sequences() is 1 and
  // first() is 0 then. Empty: rows are where sequences() and first() say.
  virtual Tensor places() const = 0;
  virtual Tensor state() = 0;  // [sequences, width]
  // Which positions are real: [sequences, length], 0 or 1; empty: all. Those of a sequence stand at
  // its beginning, one at least.
  virtual Tensor mask() const = 0;
  virtual const SequenceEnds& ends() const = 0;  // where there is a mask
  // What the caller gave for the input that LayerDef::input names; an Error where nobody did.
  virtual Result<Tensor> given() const = 0;
  virtual const Tensor& rope_cos() const = 0;
  virtual const Tensor& rope_sin() const = 0;
  virtual const Tensor& position_numbers() const = 0;  // 0, 1, 2, ... of RopeSpec::numbers, i32
  virtual bool training() const = 0;
  virtual Noise noise() const = 0;
  // Adds weight * value to the loss that is trained; value: one number. In training alone.
  virtual Status add_loss(const Tensor& value, float weight) = 0;
  // Moves buffer i of the layer (ParamSpec::trained) by rate * (value - buffer), once the step is
  // done; where it is dropped, the buffer stays. value: vector of its length. In training alone.
  virtual Status keep(size_t i, const Tensor& value, float rate) = 0;
  // Which samples of a batch in training are real, where some may only fill it up: [samples, 1], 1
  // or 0; empty: all are. least: how many must be.
  virtual Result<Tensor> present(int64_t least) = 0;
  virtual Result<Tensor> child(size_t i, const Tensor& input, const Tensor& skip = {}) = 0;
  // Whether values can be looked at in the middle of a pass: in those of the host that run as they
  // are recorded, outside training. settle() runs what was recorded so far; false: nothing has
  // values, the pass only finds out what memory others will take.
  virtual bool looks() const = 0;
  virtual Result<bool> settle() = 0;
  // Takes the memory that child() would ask for, without a command: for a child that is not run.
  // input: what child() would read. The plan keeps that apart from what the child writes.
  virtual Status pass_over(size_t i, const Tensor& input) = 0;
  // The same for a child of any number of inputs; every output of it (LayerDef::forward_all).
  virtual Result<std::vector<Tensor>> child_all(size_t i, std::span<const Tensor> inputs) = 0;

  // Shorthands over the above.
  Result<Tensor> like(const Tensor& t) { return tensor(t.shape); }
  // Memory for 32-bit ids; no compute type is narrower.
  Result<Tensor> ids(const Shape& shape) {
    LOOM_ASSIGN(Tensor t, tensor(shape));
    t.dtype = DType::i32;
    return t;
  }
  // One value that is always the same; an operand of binary ops.
  Result<Tensor> constant(float value) {
    LOOM_ASSIGN(Tensor t, tensor(Shape{1}));
    LOOM_TRY(ops().fill({t, value}));
    return t;
  }
};

// A layer in a few words: what make_layer() takes.
struct LayerSketch {
  LayerKind kind;
  std::vector<Field> fields = {};
  std::vector<LayerSketch> children = {};
};
LayerSketch sketch_dense(int64_t in, int64_t out, std::string_view activation = "linear");

// A small network, one layer after the other, in which a kind has what it can have: biases, groups,
// strides, children. Its extents are odd, so that no vector is full; where the output of the kind
// could not be trained (norms, probabilities), Dense layers stand around it.
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
  bool wired = false;      // a container whose children say what they read: layers/graph.hpp
  bool takes_ids = false;  // its input are 32-bit ids
  // A row of its output follows from the same row of its input and, where it looks further, from
  // places(): rows of several sequences can share a pass. Of containers: if the children can.
  bool ragged = false;
  // The parameters of a layer with this configuration, in a fixed order.
  void (*params)(const LayerConfig&, std::vector<ParamSpec>&) = nullptr;
  // Shape of the output for an input shape; the Error says which extent is wrong.
  Result<Shape> (*infer)(const LayerConfig&, const Shape&) = nullptr;
  // Records the ops of one pass and returns the output.
  Result<Tensor> (*forward)(ForwardCall&) = nullptr;
  // Kinds of several inputs or outputs, which stand in a Graph: how many inputs, the shapes of the
  // outputs for theirs in the place of infer, and, where outputs are several, all of them in the
  // place of forward.
  int fewest_inputs = 1, most_inputs = 1;
  Result<std::vector<Shape>> (*infer_all)(const LayerConfig&, std::span<const Shape>) = nullptr;
  Result<std::vector<Tensor>> (*forward_all)(ForwardCall&) = nullptr;
  StateSpec (*state)(const LayerConfig&) = nullptr;  // null: none
  RopeSpec (*rope)(const LayerConfig&) = nullptr;    // null: none
  InputSpec (*input)(const LayerConfig&) = nullptr;  // null: it brings no input of the network
  // Takes a second input, of the shape of its first: what came before the layer that made its
  // input. Null: never.
  bool (*wants_skip)(const LayerConfig&) = nullptr;
  // Blocks alone (blocks.hpp): the layer of other kinds that it stands for.
  Result<LayerConfig> (*expand)(const LayerConfig&) = nullptr;
  // What tests, proofs and benches of every kind run on. Frozen for a released kind:
  // tests/golden/training.txt has hashes of it.
  LayerExample (*example)() = nullptr;
};

const LayerDef& layer_def(LayerKind kind);
std::span<const LayerDef* const> layer_table();
// The layers of a sketch or an example, one after the other. An Error is that of make_layer().
Result<std::vector<LayerConfig>> make_layers(const std::vector<LayerSketch>& sketches);

// Shape of the output of a layer, children included; disabled layers pass their input on.
Result<Shape> infer_shape(const LayerConfig& layer, const Shape& in);
// The same for a layer after others: `skip` is the input of the layer before it. Checks layers that
// take it.
Result<Shape> infer_after(const LayerConfig& layer, const Shape& in, const Shape& skip);
// The same for a layer of any number of inputs: the shapes of all its outputs. Two inputs of a
// layer that takes a second one are x and skip.
Result<std::vector<Shape>> infer_all(const LayerConfig& layer, std::span<const Shape> in);
// Every output of the layer that `call` is about.
Result<std::vector<Tensor>> forward_all(ForwardCall& call);
// The same for the last layer of a network, whose outputs may be several.
Result<std::vector<Shape>> infer_all_after(const LayerConfig& layer, const Shape& in,
                                           const Shape& skip);
bool wants_skip(const LayerConfig& layer);
// Whether the layer, or the first enabled child that sees its input, takes 32-bit ids.
bool takes_ids(const LayerConfig& layer);

// The memory of t, which has no gaps, as a matrix of other extents.
Tensor as_matrix(const Tensor& t, int64_t rows, int64_t cols);
// Columns [first, first + count) of a matrix.
Tensor slice_cols(const Tensor& t, int64_t first, int64_t count);
// Step `i` of every sequence: t [sequences * length, width] -> [sequences, width].
Tensor step_rows(const Tensor& t, int64_t sequences, int64_t i);

}  // namespace loom::core
