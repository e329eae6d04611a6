#include "ops/recording/program.hpp"

#include <algorithm>

#include "base/arena.hpp"
#include "ops/recording/reserve.hpp"
#include "ops/recording/schedule.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

int64_t bytes_of(const Tensor& t) {
  return plain_bytes(t.dtype, t.shape);
}

// On a device small tensors keep their memory for some commands after their last use, because
// commands that share no memory can run concurrently.
constexpr int64_t kGrace = 16, kSmall = int64_t{1} << 20;

// Arena slots of all virtual tensors. Pinned ones live through every step.
ArenaPlan plan_arena(const Trace& trace, std::span<Tensor* const> pinned, bool device) {
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
    const int64_t bytes = bytes_of(trace.tensor(static_cast<int64_t>(i)));
    const int slot = plan.add(bytes, always ? 0 : std::max<int64_t>(lives[i].first, 0));
    const int64_t last = lives[i].last + (device && bytes <= kSmall ? kGrace : 0);
    plan.use(slot, always ? end : std::clamp<int64_t>(last, 0, end));
  }
  plan.solve();
  return plan;
}

}  // namespace

Status reserve_for(const Trace& trace, int64_t positions, Recorder& recorder) {
  int64_t rows = 0, cols = 0;
  for (const Command& command : trace.commands()) {
    with_args(command, [&](const auto& args) {
      if constexpr (requires { args.use_q8; }) {
        rows = std::max(rows, args.x.rows());
        cols = std::max(cols, args.x.cols());
      }
    });
  }
  return recorder.reserve(std::ssize(trace.commands()) * 2, rows, cols, positions);
}

// Real memory that is not on the device yet, as ranges that do not overlap. Memory that no command
// writes is constant.
Status Program::attach(std::vector<Command>& commands) {
  Device* device = recorder_->ops().device;
  if (device == nullptr) return {};
  const MemoryRange arena = range_of(arena_);
  LOOM_ASSIGN(attached_, Attached::attach(device, {&arena, 1}, MemoryUse::scratch, false));
  std::vector<MemoryRange> ranges;
  bool written = false;
  for (Command& command : commands) {
    visit_command(command, [&](Tensor& t, Access access) {
      if (t.empty() || device->holds(range_of(t))) return;
      ranges.push_back(range_of(t));
      written = written || access != Access::read;
    });
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const MemoryRange& a, const MemoryRange& b) { return a.begin < b.begin; });
  std::vector<MemoryRange> merged;
  for (const MemoryRange& range : ranges) {
    if (!merged.empty() && range.begin < merged.back().begin + merged.back().bytes) {
      MemoryRange& last = merged.back();
      last.bytes = std::max<int64_t>(last.bytes, range.begin + range.bytes - last.begin);
    } else {
      merged.push_back(range);
    }
  }
  LOOM_ASSIGN(others_, Attached::attach(device, merged,
                                        written ? MemoryUse::state : MemoryUse::weights, true));
  return {};
}

int64_t Program::planned_bytes(const Trace& trace, std::span<Tensor* const> pinned,
                               const Ops& ops) {
  return plan_arena(trace, pinned, ops.device != nullptr).total();
}

Result<Program> Program::compile(Trace trace, std::span<Tensor* const> pinned, const Ops& ops,
                                 ThreadPool& pool, ActivationMode mode) {
  LOOM_TRY(trace.named());
  if (ops.device != nullptr && trace.notes().empty()) schedule(trace.commands());
  const ArenaPlan plan = plan_arena(trace, pinned, ops.device != nullptr);
  Program program;
  LOOM_ASSIGN(program.arena_, allocate_for(ops, plan.total()));
  const auto relocate = [&](Tensor& t) {
    const int64_t i = t.empty() ? -1 : trace.find(t.data);
    if (i < 0) return;
    const int64_t inside = t.data - trace.tensor(i).data;
    t.data = program.arena_.data() + plan.offset(static_cast<int>(i)) + inside;
  };
  program.recorder_ = std::make_unique<Recorder>(ops, pool, mode);
  if (mode == ActivationMode::q8) LOOM_TRY(reserve_for(trace, 0, *program.recorder_));
  program.notes_ = trace.notes();
  size_t next = 0;  // note
  const auto place_notes = [&](int64_t command) {
    for (; next < program.notes_.size() && program.notes_[next].command == command; ++next) {
      Note& note = program.notes_[next];
      note.command = program.recorder_->commands();
      relocate(note.tensor);
    }
  };
  std::vector<bool> written(static_cast<size_t>(trace.tensors())), read(written.size());
  for (Command& command : trace.commands()) {
    visit_command(command, [&](Tensor& t, Access access) {
      const int64_t i = t.empty() ? -1 : trace.find(t.data);
      if (i >= 0) (access == Access::read ? read : written)[static_cast<size_t>(i)] = true;
      relocate(t);
    });
  }
  LOOM_TRY(program.attach(trace.commands()));
  int64_t index = 0;
  for (Command& command : trace.commands()) {
    place_notes(index++);
    Status status;
    with_args(command, [&](auto& args) { status = program.recorder_->record(args); });
    LOOM_TRY(std::move(status));
  }
  place_notes(index);
  for (Tensor* t : pinned) {
    const int64_t i = t->empty() ? -1 : trace.find(t->data);
    relocate(*t);
    if (i < 0) continue;
    const auto n = static_cast<size_t>(i);
    if (read[n] && !written[n]) program.inputs_.push_back(*t);
  }
  program.commands_ = static_cast<int64_t>(trace.commands().size());
  return program;
}

Status Program::send_inputs() const {
  for (const Tensor& t : inputs_) LOOM_TRY(to_device(recorder_->ops(), t));
  return {};
}

Status Program::run_again(const Tensor& changed) {
  for (const Tensor& t : inputs_) {
    if (t.data == changed.data) LOOM_TRY(to_device(recorder_->ops(), t));
  }
  return recorder_->run();
}

Status Program::run() {
  LOOM_TRY(send_inputs());
  return recorder_->run();
}

Status Program::run(const Watch& watch) {
  LOOM_TRY(send_inputs());
  int64_t done = 0;
  for (const Note& note : notes_) {
    LOOM_TRY(recorder_->run(done, note.command));
    done = note.command;
    LOOM_TRY(to_host(recorder_->ops(), {note.tensor}));
    watch(note.id, note.tensor);
  }
  return recorder_->run(done, recorder_->commands());
}

}  // namespace loom::core
