// A network recorded once for inputs of one shape: the basis of training, gradient checks and
// evaluation. Every pass is independent: it has no caches and no states of recurrent layers.
// Feedback links read zeros, unless the caller provides the values of the previous pass.
#pragma once

#include "grid/feedback.hpp"
#include "grid/pass.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

struct TraceOptions {
  bool training = false;
  uint64_t seed = 0;
  bool masked = false;  // sequences may end early: adds tensors for their lengths
  // A sample is a row of documents, one after the other, which do not see each other:
  // TracedNetwork::row_positions. Errors of trace_network(): a layer that needs whole sequences.
  bool documents = false;
  // Samples may be absent: their number changes from batch to batch. TracedNetwork::present marks
  // the present ones. false means that all are present.
  bool partial = false;
  // Whether the caller fills TracedNetwork::more; false means that inputs besides the first are
  // zeros.
  bool given = false;
  bool noted = false;  // the output of cell i is note i of the trace
  // TracedNetwork::y is the output of the cell before the last, which is an output stage.
  bool before_stage = false;
  // The inputs of feedback links, per cell (FeedbackMemory::tensors); null means zeros.
  const std::vector<Tensor>* feedback = nullptr;
};

struct TracedNetwork {
  Tensor x, y;
  std::vector<Tensor> more_outputs;  // outputs of the network after y
  Tensor mask;               // [sequences, length], 1 keeps; empty without TraceOptions::masked
  SequenceEnds ends;         // the same as rows
  Tensor row_positions;      // [sequences * length, 2], i32; empty without TraceOptions::documents
  Tensor step;               // one number, the step of the random streams
  std::vector<Tensor> more;  // further tensors that the caller fills: inputs besides x
  std::vector<AddedLoss> losses;
  // Updates of buffers: record_kept() of room learn, after everything else.
  std::vector<BufferUpdate> kept;
  Tensor present;                // [samples, 1], 1 or 0; empty if no layer needs it
  int64_t least = 0;             // samples that must be present
  std::vector<Tensor> outputs;   // of every cell
  std::vector<int64_t> starts;   // of every cell: its first command
  std::vector<RopeTable> ropes;  // must outlive the program of the trace
  std::vector<Tensor> feedback;  // values that feedback links read in this pass, per cell
};

// Records all cells of `network` for inputs of the shape it was finalized with. Sequences are the
// first axis. Parameters must be allocated; their addresses are recorded.
Result<TracedNetwork> trace_network(const Network& network, Trace& trace,
                                    const TraceOptions& options);
// Writes the number of real positions of each sequence, from 1 on, to mask and ends, [sequences,
// length] and their companions. Sequences after the end of the list are whole. Does nothing if
// these tensors are empty.
void mark_lengths(const Tensor& mask, const SequenceEnds& ends, std::span<const int64_t> lengths);
// Writes row_positions for documents of these lengths, sample by sample: each list sums to the
// length of a sample. Errors: invalid_argument for other sums.
Status mark_documents(const Tensor& row_positions, std::span<const std::vector<int64_t>> samples);
// Copies to `feedback` the values that the next pass reads. Record it after everything that reads
// outputs of this pass, so that their memory stays live.
Status record_feedback(const TracedNetwork& traced, const std::vector<Tensor>& feedback,
                       Recorder& recorder);

}  // namespace loom::core
