// ForwardCall: the data of a layer in one pass, and the ops that it records with.
#pragma once

#include <span>
#include <vector>

#include "layers/core/layer.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {

// The source of a layer's random numbers: value i of stream (seed, stream) at step *step.
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
  // The second input of layers that take one (LayerDef::wants_skip).
  virtual const Tensor& skip() const = 0;
  // All inputs of a layer that takes several (LayerDef::max_inputs); x() is the first.
  virtual std::span<const Tensor> inputs() const = 0;
  // Contiguous memory of the compute type, valid while anything recorded reads it.
  virtual Result<Tensor> tensor(const Shape& shape) = 0;
  virtual const Tensor& param(size_t i) const = 0;  // in the order of LayerDef::params
  // Rows of x are `sequences` consecutive runs of equal length. All runs start at position `first`.
  virtual int64_t sequences() const = 0;
  virtual int64_t first() const = 0;
  // Whether passes continue each other, so that cache() and state() hold earlier data. If not, x
  // holds whole sequences and neither exists.
  virtual bool stateful() const = 0;
  virtual KvCache cache() = 0;  // of all sequences
  // Ragged passes (LayerDef::ragged): a RowPosition for each row of x, [R, 2]; sequences() is then
  // 1 and first() is 0. Empty means that sequences() and first() apply.
  virtual Tensor places() const = 0;
  virtual Tensor state() = 0;  // [sequences, width]
  // The real positions: [sequences, length], 0 or 1; empty means all. The real positions of a
  // sequence come first; it has at least one.
  virtual Tensor mask() const = 0;
  virtual const SequenceEnds& ends() const = 0;  // valid if there is a mask
  // The caller's tensor for the input that LayerDef::input names. Errors: the input is not set.
  virtual Result<Tensor> given() const = 0;
  virtual const Tensor& rope_cos() const = 0;
  virtual const Tensor& rope_sin() const = 0;
  virtual const Tensor& position_numbers() const = 0;  // 0, 1, 2, ... of RopeSpec::numbers, i32
  virtual bool training() const = 0;
  virtual Noise noise() const = 0;
  // Adds weight * value to the training loss. value: one number. Training only.
  virtual Status add_loss(const Tensor& value, float weight) = 0;
  // Moves buffer i of the layer (ParamSpec::trained) by rate * (value - buffer) at the end of the
  // step. If the step is dropped, the buffer is unchanged. value: vector of its length. Training
  // only.
  virtual Status keep(size_t i, const Tensor& value, float rate) = 0;
  // The real samples of a training batch, if some may be padding: [samples, 1], 1 or 0; empty means
  // all. least: the minimum number of real samples.
  virtual Result<Tensor> present(int64_t least) = 0;
  virtual Result<Tensor> child(size_t i, const Tensor& input, const Tensor& skip = {}) = 0;
  // Whether a layer can read values in the middle of a pass. Only host passes that run as they are
  // recorded, outside training, allow it. settle() runs the commands recorded so far. It returns
  // false if nothing has values, because the pass only measures the memory of other passes.
  virtual bool can_read_values() const = 0;
  virtual Result<bool> settle() = 0;
  // Takes the memory that child() would request, without commands, for a child that is skipped.
  // input: the input of child(). The plan keeps it apart from the child's outputs.
  virtual Status skip_child(size_t i, const Tensor& input) = 0;
  // The same as child() for any number of inputs; returns every output (LayerDef::forward_all).
  virtual Result<std::vector<Tensor>> child_all(size_t i, std::span<const Tensor> inputs) = 0;

  // Shorthands over the above.
  Result<Tensor> like(const Tensor& t) { return tensor(t.shape); }
  // Memory for 32-bit ids; every compute type is at least as wide.
  Result<Tensor> ids(const Shape& shape) {
    LOOM_ASSIGN(Tensor t, tensor(shape));
    t.dtype = DType::i32;
    return t;
  }
  // A constant value; an operand of binary ops.
  Result<Tensor> constant(float value) {
    LOOM_ASSIGN(Tensor t, tensor(Shape{1}));
    LOOM_TRY(ops().fill({t, value}));
    return t;
  }
};

}  // namespace loom::core
