// Session::Impl: the shared state of the files of Session. Private to them.
#pragma once

#include <optional>

#include "base/arena.hpp"
#include "grid/feedback.hpp"
#include "grid/pass.hpp"
#include "grid/session.hpp"
#include "ops/operands.hpp"
#include "ops/recording/device.hpp"

namespace loom::core {

// A recorded ragged pass: its input, its output, and the time of its last run. Stores the number of
// rows that went on to the last cells; -1 means an unused entry.
struct CachedPlan {
  Tensor input, output;
  int64_t num_outputs = -1;
  int64_t used = 0;
  std::vector<Command> commands;
};

// The part of a masked session: the lengths of its sequences and their mask.
struct MaskedRows {
  std::vector<int64_t> lengths;
  Buffer mask_memory, ends_memory;
  Tensor mask;
  SequenceEnds ends;
};

// The part of a ragged session: the locations of rows, and its recorded passes.
struct RaggedRows {
  Buffer place_memory;  // locations of all rows (ops/recording/pages.hpp)
  int64_t place_width = 2;
  Tensor row_positions;
  Buffer page_memory;                    // of a session with pages: their tables
  std::vector<Device::Move> page_moves;  // of copy_page()
  // Recurrent states: the order of the rows of a pass (ops/args/recurrence.hpp), and for each
  // sequence which of its two rows is current. A pass writes the other one.
  Buffer order_memory;
  Tensor step_order;
  std::vector<bool> second;
  std::vector<bool> in_pass;             // sequences of the rows that were set last
  std::vector<CachedPlan> cached_plans;  // allocated with room for all of them
  int64_t recordings = 0;
  int64_t passes = 0;  // of forward_ragged()

  // The recorded pass for this input, or else the one with the oldest run.
  CachedPlan& plan_for(const Tensor& x, int64_t num_outputs);
};

// Plain passes, and all that the kinds of sessions share.
struct Session::Impl {
  const Network* network = nullptr;
  SessionOptions options;
  Shape max_input;
  int64_t capacity = 0;
  int64_t last_position = 0;  // limit of row positions: capacity, or those that were learned
  int64_t position = 0;
  ArenaPlan plan;
  std::vector<int> first_slot;  // of each cell, and after the last
  int next_slot = 0, end_slot = 0;
  bool misplaced = false;  // a layer requested other tensors than planned
  Buffer arena;
  Buffer state_memory;
  std::vector<KvCache> caches;      // [state]
  std::vector<Tensor> states;       // [state]: [sequences, width]; two rows each if ragged
  bool has_initial_states = false;  // they are not zeros at position 0
  std::vector<Tensor> with_width() const;
  // The values that feedback links read in this pass, and in the next.
  FeedbackMemory feedback, next_feedback;
  Shape feedback_input;  // the input for which `feedback` has the shapes
  std::vector<RopeTable> ropes;
  std::unique_ptr<Recorder> recorder;
  std::vector<bool> checked;  // cells with checked parameters (Network::check_node)
  bool forget_feedback = true;
  // On a device: its memory for this session, and the upload buffer for inputs of the caller.
  Attached weights, state_attached, places_attached, memory;
  Buffer input;
  // Inputs besides the first: as the caller set them, as commands read them, and memory for zeros
  // or copies.
  std::vector<Tensor> given, received_inputs;
  std::vector<Buffer> copies;
  std::vector<Tensor> results;
  std::optional<MaskedRows> masked;
  std::optional<RaggedRows> ragged;

  Status attach();
  Result<Tensor> received(const Tensor& x, Buffer& copy);
  Status make_inputs();
  Status make_mask();
  void shape_mask(const Shape& shape);
  Status receive_lengths(const Shape& shape);
  Status receive_inputs(int64_t samples);
  Status check_params(size_t first, size_t last);
  Status plan_memory();
  KvCache cache_of(const StateSpec& s) const;  // without memory yet
  Status check_cache() const;
  Status make_state();
  Status make_row_positions();
  Status make_step_order(int64_t rows);
  void order_steps(std::span<const RowPosition> rows);
  int64_t state_row(int64_t sequence, bool current) const;
  // Rows that layers see: one per id for an Embedding's input.
  int64_t rows_of(const Shape& shape) const {
    return takes_ids(network->cells()[0].node.config) ? shape.count() : shape.rows();
  }
  Status begin_feedback(const Shape& shape);
  Status keep_feedback(const std::vector<Tensor>& outputs, size_t first);
  Status run(const Tensor& x, size_t first, size_t last, Tensor& y);
  Status keep_passes(int64_t commands);
  Status record_ragged(const Tensor& x, int64_t num_outputs, CachedPlan& cached_plan);
  Status attach_state(Device* device);
  Status fetch(const Tensor& t);
  Pass pass();
  Result<Tensor> next_tensor(const Shape& shape);
};

// A tensor over memory of the session.
inline Tensor zeroed(std::byte* memory, DType dtype, const Shape& shape) {
  Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = memory;
  return t;
}

}  // namespace loom::core
