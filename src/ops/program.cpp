#include "ops/program.hpp"

#include "base/arena.hpp"
#include "ops/visit.hpp"

namespace loom {
namespace {

int64_t bytes_of(const Tensor& t) {
  return plain_bytes(t.dtype, t.shape);
}

// Arena slots of all virtual tensors. Pinned ones live through every step.
ArenaPlan plan_arena(const Trace& trace, std::span<Tensor* const> pinned) {
  const std::vector<Lifetime> lives = trace.lifetimes();
  const auto end = static_cast<int64_t>(trace.commands().size());
  std::vector<bool> is_pinned(lives.size());
  for (const Tensor* t : pinned) {
    const int64_t i = trace.find(t->data);
    if (i >= 0) is_pinned[static_cast<size_t>(i)] = true;
  }
  ArenaPlan plan;
  for (size_t i = 0; i < lives.size(); ++i) {
    const bool always = is_pinned[i];
    const int slot = plan.add(bytes_of(trace.tensor(static_cast<int64_t>(i))),
                              always ? 0 : std::max<int64_t>(lives[i].first, 0));
    plan.use(slot, always ? end : std::max<int64_t>(lives[i].last, 0));
  }
  plan.solve();
  return plan;
}

// Room for the q8 copies of the largest input of a matmul: recorded commands hold their addresses.
Status reserve_copies(const Trace& trace, Recorder& recorder) {
  int64_t rows = 0, cols = 0;
  for (Command command : trace.commands()) {
    if (command.op != OpId::matmul) continue;
    with_args(command, [&](auto& args) {
      if constexpr (std::is_same_v<std::decay_t<decltype(args)>, MatmulArgs>) {
        rows = std::max(rows, args.x.rows());
        cols = std::max(cols, args.x.cols());
      }
    });
  }
  return recorder.reserve(static_cast<int64_t>(trace.commands().size()) * 2, rows, cols, 0);
}

}  // namespace

Result<Program> Program::compile(Trace trace, std::span<Tensor* const> pinned, const Ops& ops,
                                 ThreadPool& pool, ActivationMode mode) {
  const ArenaPlan plan = plan_arena(trace, pinned);
  Program program;
  LOOM_ASSIGN(program.arena_, Buffer::allocate(plan.total()));
  const auto relocate = [&](Tensor& t) {
    const int64_t i = t.empty() ? -1 : trace.find(t.data);
    if (i < 0) return;
    const int64_t inside = t.data - trace.tensor(i).data;
    t.data = program.arena_.data() + plan.offset(static_cast<int>(i)) + inside;
  };
  program.recorder_ = std::make_unique<Recorder>(ops, pool, mode);
  if (mode == ActivationMode::q8) LOOM_TRY(reserve_copies(trace, *program.recorder_));
  program.notes_ = trace.notes();
  size_t next = 0;  // note
  const auto place_notes = [&](int64_t command) {
    for (; next < program.notes_.size() && program.notes_[next].command == command; ++next) {
      Note& note = program.notes_[next];
      note.command = program.recorder_->commands();
      relocate(note.tensor);
    }
  };
  int64_t index = 0;
  for (Command& command : trace.commands()) {
    place_notes(index++);
    visit_command(command, [&](Tensor& t, Access) { relocate(t); });
    Status status;
    with_args(command, [&](auto& args) { status = program.recorder_->record(args); });
    LOOM_TRY(std::move(status));
  }
  place_notes(index);
  for (Tensor* t : pinned) relocate(*t);
  program.commands_ = static_cast<int64_t>(trace.commands().size());
  return program;
}

Status Program::run(const Watch& watch) {
  int64_t done = 0;
  for (const Note& note : notes_) {
    LOOM_TRY(recorder_->run(done, note.command));
    done = note.command;
    watch(note.id, note.tensor);
  }
  return recorder_->run(done, recorder_->commands());
}

}  // namespace loom
