// The tensors of a recorded step, and what recordings of the room share. Steps and optimizers
// include it; it includes neither. Private to the room.
#pragma once

#include "learn/step/step_options.hpp"
#include "ops/gradients/gradient.hpp"

namespace loom::core {

// One parameter and what trains it. Without a master the packed weight itself is trained.
struct Trained {
  Tensor weight, master, m, v;
  Tensor gradient;  // where gradients are added up over batches; else empty
  Tensor ranges;    // PackArgs::ranges; empty: scales are taken anew
  uint64_t stream = 0;
  size_t param = 0;     // of Network::params(); buffers are not among what is trained
  bool frozen = false;  // keeps its values: neither moments nor a gradient
  int64_t group = 0;    // row of StepTensors::hyper
};

// One number of a row, as [1, 1].
Tensor cell(const Tensor& row, int64_t i);
// Row `group` of StepTensors::hyper, as OptimizeArgs takes it.
Tensor hyper_of(const Tensor& hyper, int64_t group);
// Packed weights as plain bytes, to be saved unchanged.
Tensor bytes_of(const Buffer& memory);
// Zero-filled memory that outlives the programs; `memory` owns it.
Result<Tensor> persistent(const Shape& shape, std::vector<Buffer>& memory);

struct SignalPlan;
class OptimizerDriver;

// Tensors that the host fills or reads.
struct StepTensors {
  const SignalPlan* plan = nullptr;         // of a learning rule; null: back-propagation
  const OptimizerDriver* driver = nullptr;  // may be null
  // The factor of every parameter's gradient. Empty for all or for one parameter: 1.
  std::vector<Tensor> factors;
  TracedNetwork network;
  std::vector<Tensor> targets;  // per head
  Tensor weight, loss;
  Tensor row_losses;  // of an evaluation: [heads, rows], each with its weight
  Tensor hyper;       // HyperNumbers: OptimizeArgs::hyper for each learning rate
  Tensor numbers;     // [1, 3]: 0, 1, and the deviation of the noise of gradients
  // With TrainStepOptions::custom_loss: the gradient of y and the loss, which the caller gives.
  Tensor custom_gradient, custom_loss;
  Tensor report;  // [1, 4]: norm of the gradients, scale they were multiplied by; together: loss
  std::vector<Tensor*> pins();
};

// A pass as steps record it, without notes and feedback.
TraceOptions traced_as_in_steps(const TrainStepOptions& options);
// Marks the first `samples` rows of the next batch as real.
void mark_present(const TracedNetwork& network, int64_t samples);
// Each sample of the next batches is one document.
Status set_whole_documents(const TracedNetwork& network);
// Errors: fewer samples are real than a layer needs.
Status enough_present(const TracedNetwork& network);
// Its tensors, as recordings take them.
const std::vector<Tensor>* tensors_of(const FeedbackMemory& feedback);

}  // namespace loom::core
