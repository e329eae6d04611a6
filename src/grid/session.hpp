// Session: one run of a network. It owns the activations (one planned arena), the KV caches and the
// position; weights stay in the network. Nothing is allocated after create(). One thread at a time
// may use a session; any number of sessions may share a network.
//
// Passes of a session build on each other (docs/state.md): recurrent layers go on from the state at
// the current position, feedback links read what the last whole pass gave.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "grid/network.hpp"
#include "grid/rope_table.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

struct SessionOptions {
  int64_t sequences = 1;      // runs of rows that attend only to themselves
  int64_t max_positions = 0;  // capacity of the KV caches; 0: as long as one input
  ActivationMode activations = ActivationMode::q8;
  DType cache = DType::f32;  // in which keys and values are kept (KvCache::can_hold)
  // From cell `narrow_cell` on, inputs have at most `narrow_rows` rows (a language model's head
  // sees few of them). The output of the cell before it then stays valid until the next forward()
  // from an earlier cell. 0: no narrowing.
  size_t narrow_cell = 0;
  int64_t narrow_rows = 0;
  // Sequences of an input may end early, as set_lengths() says before the pass; then every pass
  // stands alone, without caches and states.
  bool masked = false;
  // Rows of an input belong to any of the sequences, each at a position of its own, as place() says
  // before the pass; the session has no position then. For networks whose layers can
  // (LayerDef::ragged). What a row gives does not depend on the other rows, on a device either.
  bool ragged = false;
  // Ragged sessions: groups of 16 positions that the caches hold for all sequences together; which
  // of them a sequence has, the caller says (page_table()). 0: each has its max_positions.
  int64_t pages = 0;
};

class Session {
 public:
  struct Impl;
  // `max_input`: the largest input one forward() will see. Plans memory for cells [0,
  // cells().size()).
  static Result<Session> create(const Network& network, const Ops& ops, ThreadPool& pool,
                                const Shape& max_input, const SessionOptions& options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // Runs cells [first, last) on `x` at the current position and returns the output, valid until the
  // next call. Does not move the position: call advance() once all cells of a piece have run. On a
  // device the host can read the output of the last cell; other outputs may be inputs of a call.
  // `fetch` false: not even that one. A pass ends with the last cell; feedback links read it from
  // then on. Errors: invalid for an input that does not fit, or that has another shape than the one
  // before where feedback links carry it on. After an error nothing of the pass has happened.
  Result<Tensor> forward(const Tensor& x, size_t first, size_t last, bool fetch = true);

  // Inputs besides the first, in the order of Network::more_inputs(), for passes from now on; those
  // that nobody gave are zeros. What they hold is read by each pass. Errors: invalid for another
  // number, shape or type; batches may be shorter than planned.
  Status give(const std::vector<Tensor>& inputs);
  // Of a masked session: how many positions of each sequence are real in passes from now on; those
  // behind the list are whole. Errors: a number below 1.
  Status set_lengths(std::span<const int64_t> lengths);
  // States of layers, [sequences, width] each, as the last pass left them: those of
  // Network::states() that have a width, in their order. Errors: those of a device.
  Result<std::vector<Tensor>> recurrent_states();
  // What the next pass begins with in their place, at position 0 too. Values are copied. Errors:
  // invalid for another number or shape.
  Status set_states(const std::vector<Tensor>& values);
  // All outputs of the last whole pass, that of forward() first; valid until the next call.
  const std::vector<Tensor>& results() const;

  // Ragged sessions: where row r of the inputs from now on belongs. Errors: invalid for more rows
  // than planned, out_of_range for a sequence or a position that there is not.
  Status place(std::span<const RowPlace> rows);
  // Ragged sessions: all cells on `x`, those from narrow_cell on for its first `wanted` rows;
  // returns their output, or nothing for none. Where rows are as many as in one of the last passes,
  // and x lies where it lay, nothing is recorded: the commands are the same, and ids and places are
  // read when they run. Errors: those of forward(); invalid where place() was told of other rows.
  Result<Tensor> forward_ragged(const Tensor& x, int64_t wanted);
  bool ragged() const;
  // Passes of forward_ragged() whose commands were recorded; the others ran those of one before.
  int64_t recordings() const;

  // Of a session with pages: where positions 16 i to 16 i + 15 of a sequence are kept, a number
  // below SessionOptions::pages each, read by passes from now on; zeros at first. Whoever writes it
  // sees to it that rows of a pass write to no page that another sequence reads.
  std::span<int32_t> page_table(int64_t sequence);
  // Keys and values of all layers. Errors: those of a device.
  Status copy_page(int32_t from, int32_t to);
  // Where a device has them: to the memory that caches() name, and back.
  Status fetch_pages(std::span<const int32_t> pages) const;
  Status send_pages(std::span<const int32_t> pages) const;

  // A count for callers; layers of ragged sessions do not see it.
  int64_t position() const;
  void advance(int64_t positions);
  void rewind(int64_t position);  // forgets everything from `position` on
  void reset();                   // position 0, and zeros for feedback links
  int64_t capacity() const;       // positions the caches hold
  // Keys and values of earlier passes, one per Network::states(). On the host, or
  // what fetch_pages() brought there.
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
