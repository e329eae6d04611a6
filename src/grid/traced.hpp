// A network recorded once for inputs of one shape: what training, gradient checks and evaluation
// start from. Every pass stands alone: no caches, no states of recurrent layers, and feedback links
// read zeros unless the caller gives them what a pass before left.
#pragma once

#include "grid/feedback.hpp"
#include "grid/pass.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

struct TraceOptions {
  bool training = false;
  uint64_t seed = 0;
  bool masked = false;  // sequences may end early: tensors that say where are made
  // Samples may be absent: their number changes from batch to batch. TracedNetwork::present says
  // which are there. false: all are.
  bool partial = false;
  // Whether the caller fills TracedNetwork::more; false: inputs besides the first are zeros.
  bool given = false;
  bool noted = false;  // the output of cell i is note i of the trace
  // What feedback links read, per cell (FeedbackMemory::tensors); null: zeros.
  const std::vector<Tensor>* feedback = nullptr;
};

struct TracedNetwork {
  Tensor x, y;
  std::vector<Tensor> more_outputs;  // of the network behind y
  Tensor mask;               // [sequences, length], 1 keeps; empty without TraceOptions::masked
  SequenceEnds ends;         // the same as rows
  Tensor step;               // one number, the step of the random streams
  std::vector<Tensor> more;  // what else the caller fills: inputs besides x
  std::vector<AddedLoss> losses;
  // What buffers become: record_kept() of room learn, behind everything else.
  std::vector<KeptValue> kept;
  Tensor present;                // [samples, 1], 1 or 0; empty where no layer asks
  int64_t least = 0;             // samples that must be present
  std::vector<Tensor> outputs;   // of every cell
  std::vector<int64_t> starts;   // of every cell: its first command
  std::vector<RopeTable> ropes;  // must outlive the program made of the trace
  std::vector<Tensor> feedback;  // what feedback links read in this pass, per cell
};

// Records all cells of `network` for inputs of the shape it was finalized with. Sequences are the
// first axis. Parameters must be allocated; their addresses are recorded.
Result<TracedNetwork> trace_network(const Network& network, Trace& trace,
                                    const TraceOptions& options);
// How many positions of each sequence are real, from 1 on; those behind the list are whole. Into
// mask and ends, [sequences, length] and what belongs to it; nothing where they are empty.
void mark_lengths(const Tensor& mask, const SequenceEnds& ends, std::span<const int64_t> lengths);
// Keeps in `feedback` what the next pass reads. To be recorded behind everything that reads outputs
// of this pass, so that their memory lives until then.
Status record_feedback(const TracedNetwork& traced, const std::vector<Tensor>& feedback,
                       Recorder& recorder);

}  // namespace loom::core
