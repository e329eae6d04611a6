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

// The facts of a pass that all of its layers share.
struct PassState {
  Recorder* recorder = nullptr;
  // Rows of an input are `sequences` consecutive runs of equal length. All start at position
  // `first`.
  int64_t sequences = 1;
  int64_t first = 0;
  // The real positions: [sequences, length], 0 or 1; empty means all. The real positions of a
  // sequence come first; it has at least one. `ends` is valid if there is a mask.
  Tensor mask;
  SequenceEnds ends;
  // Ragged passes (LayerDef::ragged): a RowPosition for each row, [R, 2]; `sequences` is then 1 and
  // `first` is 0. Empty means that these two apply.
  Tensor row_positions;
  // Ragged passes of a network with recurrent state: the order of the recurrence, i32 [R, 3]
  // (ops/args/recurrence.hpp). Empty means that rows are in order.
  Tensor step_order;
  // Whether passes continue each other, so that cache() and state() have earlier data. If not,
  // inputs are whole sequences and neither exists.
  bool stateful = false;
  bool training = false;
};

// One forward call. Shapes may be smaller than planned in every axis but the last. The driver of
// passes (grid/pass.cpp) implements the memory and the children; the rest is data.
class ForwardCall {
 public:
  virtual ~ForwardCall() = default;
  Recorder& ops() { return *pass_.recorder; }
  const LayerConfig& config() const { return config_; }
  // From LayerDef::min_inputs to max_inputs. A layer that takes a skip (LayerDef::wants_skip) has
  // it as its last input.
  std::span<const Tensor> inputs() const { return inputs_; }
  const Tensor& x() const { return inputs_[0]; }
  int64_t sequences() const { return pass_.sequences; }
  int64_t first() const { return pass_.first; }
  bool stateful() const { return pass_.stateful; }
  bool training() const { return pass_.training; }
  const Tensor& row_positions() const { return pass_.row_positions; }
  const Tensor& step_order() const { return pass_.step_order; }
  const Tensor& mask() const { return pass_.mask; }
  const SequenceEnds& ends() const { return pass_.ends; }

  // Contiguous memory of the compute type, valid while anything recorded reads it.
  virtual Result<Tensor> tensor(const Shape& shape) = 0;
  virtual const Tensor& param(size_t i) const = 0;  // in the order of LayerDef::params
  // Records y = act(x W^T + b) with the parameter `weight` as W, and its adapters. m.w is set here.
  virtual Status product(size_t weight, MatmulArgs m) = 0;
  virtual KvCache cache() = 0;  // of all sequences
  // [sequences, width]; in ragged passes, the rows that step_order() names.
  virtual Tensor state() = 0;
  // The caller's tensor for the input that LayerDef::input names. Errors: the input is not set.
  virtual Result<Tensor> extra_input() const = 0;
  virtual const PositionTable& position_table() const = 0;  // of LayerDef::rope
  virtual Noise noise() const = 0;
  // Adds weight * value to the training loss. value: one number. Training only.
  virtual Status add_loss(const Tensor& value, float weight) = 0;
  // Moves buffer i of the layer (ParamSpec::trained) by rate * (value - buffer) at the end of the
  // step. If the step is dropped, the buffer is unchanged. value: vector of its length. Training
  // only.
  virtual Status update_buffer(size_t i, const Tensor& value, float rate) = 0;
  // The real samples of a training batch, if some may be padding: [samples, 1], 1 or 0; empty means
  // all. least: the minimum number of real samples.
  virtual Result<Tensor> sample_mask(int64_t least) = 0;
  // Records child i; returns all its outputs. inputs: as those of inputs() above.
  virtual Result<LayerOutputs> child(size_t i, std::span<const Tensor> inputs) = 0;
  // Takes the memory that child() would request, without commands, for a child that is skipped.
  // input: the input of child(). The plan separates it from the child's outputs.
  virtual Status skip_child(size_t i, const Tensor& input) = 0;
  // Whether a layer can read values in the middle of a pass. Only host passes that run as they are
  // recorded, outside training, allow it. synchronize() runs the commands recorded so far. It
  // returns false if nothing has values, because the pass only measures the memory of other passes.
  virtual bool can_read_values() const = 0;
  virtual Result<bool> synchronize() = 0;

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
  // factor * x; x itself if the factor is 1.
  Result<Tensor> scaled(const Tensor& x, float factor) {
    if (factor == 1.0f) return x;
    LOOM_ASSIGN(const Tensor number, constant(factor));
    LOOM_ASSIGN(const Tensor y, like(x));
    LOOM_TRY(ops().binary({x, number, y, BinaryKind::mul}));
    return y;
  }

 protected:
  // All three must outlive the call.
  ForwardCall(const PassState& pass, const LayerConfig& config, std::span<const Tensor> inputs)
      : pass_(pass), config_(config), inputs_(inputs) {}

 private:
  const PassState& pass_;
  const LayerConfig& config_;
  std::span<const Tensor> inputs_;
};

}  // namespace loom::core
