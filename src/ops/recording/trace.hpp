// Trace: ops recorded over virtual tensors. To layers it looks like a session: they request tensors
// and record ops, but the addresses only identify tensors and are never read. Gradients
// (ops/gradients/gradient.hpp), lifetimes and an executable Program (ops/recording/program.hpp) are
// derived from a trace. Invariant: every part of a virtual tensor is written once before it is
// read.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "ops/ops.hpp"

namespace loom::core {

// First and last command that touches a tensor; first is -1 if there is none.
struct Lifetime {
  int64_t first = -1, last = -1;
};

// A point at which a run may stop to show a tensor: before command `command` (Program::run).
struct Note {
  int64_t command = 0;
  Tensor tensor;
  int64_t id = 0;  // the caller's number of the note
};

// Bytes that the addresses of one trace may cover: half of the address space, bounded so that their
// sums never overflow (docs/decisions/0026-names-of-memory.md).
constexpr int64_t kMaxNames = int64_t{1} << (sizeof(void*) == 4 ? 31 : 60);

class Trace {
 public:
  // `compute`: type of activations. differentiable: records an activation as an op of its own if
  // its derivative needs more than its result, so that its input is kept. `max_names`: limit of
  // the bytes of all tensors together, for tests.
  explicit Trace(DType compute, bool differentiable = false, int64_t max_names = kMaxNames)
      : compute_(compute), differentiable_(differentiable), max_names_(max_names) {}

  // Whether every tensor has an address of its own; if not, the trace must not be used. Errors:
  // out_of_memory.
  Status named() const;

  DType compute() const { return compute_; }
  bool differentiable() const { return differentiable_; }

  // A new virtual tensor, contiguous, of the compute type by default.
  Tensor fresh(const Shape& shape);
  Tensor fresh(const Shape& shape, DType dtype);

  int64_t tensors() const { return static_cast<int64_t>(tensors_.size()); }
  const Tensor& tensor(int64_t i) const { return tensors_[static_cast<size_t>(i)]; }
  // The virtual tensor that `p` points into; -1 for real memory.
  int64_t find(const std::byte* p) const;

  std::vector<Command>& commands() { return commands_; }
  const std::vector<Command>& commands() const { return commands_; }

  // Shows `t`, after the commands recorded so far, to the observer of a run.
  void note(const Tensor& t, int64_t id);
  // The same before command `command`, at or after the last note.
  void note_before(int64_t command, const Tensor& t, int64_t id);
  const std::vector<Note>& notes() const { return notes_; }

  std::vector<Lifetime> lifetimes() const;

 private:
  DType compute_;
  bool differentiable_;
  std::vector<Tensor> tensors_;  // ascending addresses
  int64_t next_ = 0, max_names_;
  bool exhausted_ = false;
  std::vector<Command> commands_;
  std::vector<Note> notes_;  // ascending commands
};

}  // namespace loom::core
