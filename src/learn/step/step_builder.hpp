// The recordings of a TrainStep. Private to the room.
#pragma once

#include "learn/step/step_tensors.hpp"

namespace loom::core {

// Forward, loss and gradients; with accumulate == 1 the update too. together, for devices: the
// updates of many parameters follow each other, for which gradients are kept longer, and the loss
// is in the report. feedback: what feedback links carry to the next step; null: every step starts
// from zeros.
Status record_step(Trace& trace, const Network& network, const TrainStepOptions& options,
                   const std::vector<Trained>& trained, const std::vector<Tensor>* feedback,
                   StepTensors& t, bool together);
// Moves the buffers of a pass, in the order of use; `finite`: 1, or NaN where the step is dropped.
Status record_kept(Trace& trace, const TracedNetwork& network, const Tensor& finite);
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
// Masters into the network's packed weights.
Status record_pack(Trace& trace, const TrainStepOptions& options,
                   const std::vector<Trained>& trained);
// Packing one of them from f32 values of its shape.
PackArgs pack_of(const Trained& p, const Tensor& values, const TrainStepOptions& options);

}  // namespace loom::core
