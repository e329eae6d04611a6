// ForwardCall: what a layer works on in one pass, and the ops it records with.
#pragma once

#include <span>
#include <vector>

#include "layers/layer.hpp"
#include "ops/recorder.hpp"

namespace loom::core {

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

}  // namespace loom::core
