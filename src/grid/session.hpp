// Session: one run of a network. It owns the activations (one planned arena), the KV caches and the
// position; weights stay in the network. It allocates nothing after create(). One thread at a time
// may use a session; any number of sessions may share a network.
//
// Passes of a session continue each other (docs/state.md). Recurrent layers start from the state at
// the current position; feedback links read the output of the last whole pass.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "grid/network.hpp"
#include "grid/rope_table.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

struct SessionOptions {
  int64_t sequences = 1;      // runs of rows that attend only to themselves
  int64_t max_positions = 0;  // capacity of the KV caches; 0 means the length of one input
  ActivationMode activations = ActivationMode::q8;
  DType cache = DType::f32;  // type of stored keys and values (KvCache::can_hold)
  // From cell `logits_from_cell` on, inputs have at most `num_logits_rows` rows: a language model's
  // head gets few of them. The output of the cell before it then stays valid until the next
  // forward() from an earlier cell. 0 disables the limit.
  size_t logits_from_cell = 0;
  int64_t num_logits_rows = 0;
  // Sequences of an input may end early; set_lengths() sets their lengths before the pass. Every
  // pass is then independent, without caches and states.
  bool masked = false;
  // Rows of an input belong to any of the sequences, each at a position of its own; place() sets
  // them before the pass. The session then has no position. Only for networks whose layers support
  // it (LayerDef::ragged). The result of a row does not depend on the other rows, on a device
  // either.
  bool ragged = false;
  // Ragged sessions: groups of 16 positions that the caches hold for all sequences together. The
  // caller assigns them to sequences (page_table()). 0 means that each sequence has its own
  // max_positions.
  int64_t pages = 0;
};

class Session {
 public:
  struct Impl;
  // `max_input`: the largest input of any forward(). Plans memory for cells [0, cells().size()).
  static Result<Session> create(const Network& network, const Ops& ops, ThreadPool& pool,
                                const Shape& max_input, const SessionOptions& options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Runs cells [first, last) on `x` at the current position and returns the output, valid until the
  // next call. It does not move the position: call advance() after all cells of a piece have run.
  // On a device the host can read the output of the last cell; other outputs may be inputs of a
  // call. With `fetch` false the host cannot read that one either. A pass ends with the last cell;
  // feedback links then read its output. Errors: invalid for an input that does not fit, or whose
  // shape differs from the previous one while feedback links carry it. After an error the pass has
  // had no effect.
  Result<Tensor> forward(const Tensor& x, size_t first, size_t last, bool fetch = true);

  // Sets the inputs besides the first, in the order of Network::extra_inputs(), for passes from now
  // on. Unset inputs are zero. Each pass reads their current values. Errors: invalid for another
  // number, shape or type; batches may be shorter than planned.
  Status give(const std::vector<Tensor>& inputs);
  // For masked sessions: the number of real positions of each sequence in passes from now on.
  // Sequences after the end of the list are whole. Errors: a number below 1.
  Status set_lengths(std::span<const int64_t> lengths);
  // States of layers, [sequences, width] each, after the last pass: those of Network::states() with
  // a width, in their order. Errors: those of a device.
  Result<std::vector<Tensor>> recurrent_states();
  // Sets the states for the start of the next pass, even at position 0. Values are copied. Errors:
  // invalid for another number or shape.
  Status set_states(const std::vector<Tensor>& values);
  // All outputs of the last whole pass; the output of forward() is the first. Valid until the next
  // call.
  const std::vector<Tensor>& results() const;

  // Ragged sessions: sets the locations of the rows of inputs from now on. Errors: invalid for more
  // rows than planned, out_of_range for a missing sequence or position.
  Status set_row_positions(std::span<const RowPosition> rows);
  // Ragged sessions: runs all cells on `x`; cells from logits_from_cell on run for its first
  // `wanted` rows. Returns their output, or nothing for none. If one of the last passes had the
  // same number of rows and the same x memory, nothing is recorded. Its commands run again; they
  // read ids and positions at run time. Errors: those of forward(); invalid if place() was called
  // with other rows.
  Result<Tensor> forward_ragged(const Tensor& x, int64_t num_outputs);
  bool ragged() const;
  // The number of forward_ragged() passes that recorded commands; others reused a recording.
  int64_t recordings() const;

  // For sessions with pages: the location of positions 16 i to 16 i + 15 of a sequence, a number
  // below SessionOptions::pages each. Passes from now on read it; initially zeros. The caller must
  // ensure that rows of a pass write to no page that another sequence reads.
  std::span<int32_t> page_table(int64_t sequence);
  // Copies keys and values of all layers. Errors: those of a device.
  Status copy_page(int32_t from, int32_t to);
  // Copy pages from a device to the memory of caches(), and back.
  Status fetch_pages(std::span<const int32_t> pages) const;
  Status send_pages(std::span<const int32_t> pages) const;

  // Ragged sessions with recurrent states. Rows at position 0 begin with zeros, others with the
  // current state of their sequence; they must continue it. A pass leaves that state as it is.
  // keep_states() makes the states that the last pass wrote current, and undo_states() the one
  // before the last keep_states() of a sequence. Both do nothing without such states.
  bool has_states() const;
  void keep_states();
  void undo_states(int64_t sequence);
  // Copies the current state of one sequence to another. Errors: those of a device.
  Status copy_states(int64_t from, int64_t to);
  // The current state of every recurrent layer, [1, width]. fetch_states() and send_states() copy
  // it from a device and back.
  std::vector<Tensor> states_of(int64_t sequence) const;
  Status fetch_states(int64_t sequence) const;
  Status send_states(int64_t sequence) const;

  // A counter for callers; layers of ragged sessions do not use it.
  int64_t position() const;
  void advance(int64_t positions);
  void rewind(int64_t position);  // drops everything from `position` on
  void reset();                   // position 0, and zeros for feedback links
  int64_t capacity() const;       // positions the caches hold
  // Keys and values of earlier passes, one per Network::states(). They are on the host, or fetched
  // by fetch_pages().
  const std::vector<KvCache>& caches() const;

  int64_t arena_bytes() const;
  int64_t state_bytes() const;
  Recorder& recorder();
  const Recorder& recorder() const;

 private:
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core
