// Trace: ops recorded over virtual tensors. Layers cannot tell it from a session: they ask for
// tensors and record ops, but the addresses only name tensors and are never read. From a trace
// follow gradients (ops/gradient.hpp), lifetimes, and a Program that runs (ops/program.hpp).
// Invariant: every part of a virtual tensor is written once before it is read.
#pragma once

#include <vector>

#include "base/result.hpp"
#include "ops/ops.hpp"

namespace loom::core {

// First and last command that touches a tensor; first is -1 for one that none does.
struct Lifetime {
  int64_t first = -1, last = -1;
};

// A place where a run may stop to show a tensor: before command `command` (Program::run).
struct Note {
  int64_t command = 0;
  Tensor tensor;
  int64_t id = 0;  // what the writer of the note calls it
};

// Bytes that the names of one trace may cover: half of the address space, and never so many that
// sums of them overflow (docs/decisions/0026-names-of-memory.md).
constexpr int64_t kMostNames = int64_t{1} << (sizeof(void*) == 4 ? 31 : 60);

class Trace {
 public:
  // `compute`: type of activations. differentiable: activations whose derivative needs more than
  // their result are recorded as ops of their own, so that their input is kept. `most_names`: bytes
  // that all tensors together may have, for tests.
  explicit Trace(DType compute, bool differentiable = false, int64_t most_names = kMostNames)
      : compute_(compute), differentiable_(differentiable), most_names_(most_names) {}

  // Whether every tensor has a name of its own; where not, nothing may be made of this trace.
  // Errors: out_of_memory.
  Status named() const;

  DType compute() const { return compute_; }
  bool differentiable() const { return differentiable_; }

  // A new virtual tensor, contiguous, of the compute type unless said otherwise.
  Tensor fresh(const Shape& shape);
  Tensor fresh(const Shape& shape, DType dtype);

  int64_t tensors() const { return static_cast<int64_t>(tensors_.size()); }
  const Tensor& tensor(int64_t i) const { return tensors_[static_cast<size_t>(i)]; }
  // The virtual tensor that `p` points into; -1: real memory.
  int64_t find(const std::byte* p) const;

  std::vector<Command>& commands() { return commands_; }
  const std::vector<Command>& commands() const { return commands_; }

  // Shows `t`, as it stands after the commands recorded so far, to whoever watches a run.
  void note(const Tensor& t, int64_t id);
  // The same before command `command`, at or behind the last note.
  void note_before(int64_t command, const Tensor& t, int64_t id);
  const std::vector<Note>& notes() const { return notes_; }

  std::vector<Lifetime> lifetimes() const;

 private:
  DType compute_;
  bool differentiable_;
  std::vector<Tensor> tensors_;  // ascending addresses
  int64_t next_ = 0, most_names_;
  bool exhausted_ = false;
  std::vector<Command> commands_;
  std::vector<Note> notes_;  // ascending commands
};

}  // namespace loom::core
