// The recordings of a TrainStep, and what recordings of the room share. Private to the room.
#pragma once

#include "learn/train_step.hpp"
#include "ops/gradient.hpp"

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
// Packed weights as plain bytes, to be saved as they lie.
Tensor bytes_of(const Buffer& memory);
// Zero-filled memory that outlives the programs; `memory` owns it.
Result<Tensor> persistent(const Shape& shape, std::vector<Buffer>& memory);

struct SignalPlan;
class Kfac;

// Tensors that the host fills or reads.
struct StepTensors {
  const SignalPlan* plan = nullptr;  // of a learning rule; null: back-propagation
  const Kfac* kfac = nullptr;        // of that optimizer
  // What the gradients of every parameter are multiplied by; empty: 1, for all or for this one.
  std::vector<Tensor> factors;
  TracedNetwork network;
  std::vector<Tensor> targets;  // per head
  Tensor weight, loss;
  Tensor row_losses;  // of an evaluation: [heads, rows], each with its weight
  Tensor hyper;       // HyperNumbers: OptimizeArgs::hyper for each learning rate
  Tensor numbers;     // [1, 3]: 0, 1, and the deviation of the noise of gradients
  // With TrainStepOptions::given_loss: the gradient of y and the loss, which the caller gives.
  Tensor given_gradient, given_loss;
  Tensor report;  // [1, 4]: norm of the gradients, scale they were multiplied by; together: loss
  std::vector<Tensor*> pins();
};

// A pass as steps record it, without notes and feedback.
TraceOptions traced_as_in_steps(const TrainStepOptions& options);
// Forward, loss and gradients; with accumulate == 1 the update too. together, for devices: the
// updates of many parameters follow each other, for which gradients are kept longer, and the loss
// is in the report. feedback: what feedback links carry to the next step; null: every step starts
// from zeros.
Status record_step(Trace& trace, const Network& network, const TrainStepOptions& options,
                   const std::vector<Trained>& trained, const std::vector<Tensor>* feedback,
                   StepTensors& t, bool together);
// Moves the buffers of a pass, in the order of use; `finite`: 1, or NaN where the step is dropped.
Status record_kept(Trace& trace, const TracedNetwork& network, const Tensor& finite);
// Of the next batch the first `samples` are real.
void mark_present(const TracedNetwork& network, int64_t samples);
// Errors: fewer samples are real than a layer needs.
Status enough_present(const TracedNetwork& network);
// Clipping and update from the added-up gradients, which become zero.
Status record_update(Trace& trace, const TrainStepOptions& options,
                     const std::vector<Trained>& trained, StepTensors& t, bool together);
// Forward and loss alone, as outside training.
Status record_evaluation(Trace& trace, const Network& network, const TrainStepOptions& options,
                         const std::vector<Tensor>* feedback, StepTensors& t);
// Memory for what feedback links carry from batch to batch; empty where nothing is to be carried.
Result<FeedbackMemory> carried_feedback(const Network& network, bool carry, const Ops& ops);
// Id of the note at which a run stops for the loss that the caller gives.
constexpr int64_t kGivenNote = -1;
// Its tensors, as the functions above take them.
const std::vector<Tensor>* tensors_of(const FeedbackMemory& feedback);
// Masters into the network's packed weights.
Status record_pack(Trace& trace, const TrainStepOptions& options,
                   const std::vector<Trained>& trained);
// Packing one of them from f32 values of its shape.
PackArgs pack_of(const Trained& p, const Tensor& values, const TrainStepOptions& options);

}  // namespace loom::core
