// Recorder: what layers see. Its typed methods check shapes and append commands; flush() runs the
// list in one parallel region on the CPU, or hands it to the device. Barriers stand only where a
// command touches memory that an earlier one wrote (or writes what an earlier one read); small
// commands run on lane 0 without any.
//
// Quantized activations (rule 3 of docs/numerics.md) are the recorder's business: the first matmul
// over integer-path weights that reads x adds one quantize_rows, later matmuls over the same x
// share it.
//
// A recorder over a Trace only collects commands (ops/trace.hpp): nothing runs.
#pragma once

#include <span>
#include <vector>

#include "ops/fwd.hpp"
#include "ops/ops.hpp"

namespace loom::core {

// Nanoseconds and calls per op, filled while flush() runs when asked for.
struct OpProfile {
  int64_t nanoseconds[kOpCount] = {};
  int64_t calls[kOpCount] = {};
};

class Recorder {
 public:
  Recorder(const Ops& ops, ThreadPool& pool, ActivationMode mode = ActivationMode::q8);
  explicit Recorder(Trace& trace) : trace_(&trace), mode_(ActivationMode::f32) {}

  // Room for `commands`, for q8 copies of activations of up to rows x cols, and for attention over
  // `positions`, so that nothing is allocated later.
  Status reserve(int64_t commands, int64_t rows, int64_t cols, int64_t positions);

  // Checks and appends one op.
  template <class Args>
  Status record(const Args& args);
#define LOOM_OP(name, Args)       \
  Status name(const Args& args) { \
    return record(args);          \
  }
#include "ops/ops.def"
#undef LOOM_OP

  // Runs what was recorded, and keeps it for the next run.
  Status run();
  // Runs commands [begin, end) of it.
  Status run(int64_t begin, int64_t end);
  int64_t commands() const {
    return static_cast<int64_t>(commands_.size());
  }
  // Runs what was recorded and forgets it.
  Status flush();
  // Forgets it without running it.
  void discard();
  // Takes what was recorded out of the recorder into `list`, whose own commands are forgotten. The
  // list may be run as long as the tensors live that it names, whatever is recorded or run
  // meanwhile, as the places of q8 copies do not change within what reserve() was asked for.
  void take(std::vector<Command>& list);
  Status run(std::span<const Command> list);

  // On a device each row of what is run has the bits that it has among any other number of rows, as
  // on the CPU anyway (Device::execute_rows_alone()).
  void keep_rows_alone() {
    rows_alone_ = true;
  }
  void set_profile(OpProfile* profile) {
    profile_ = profile;
  }
  ActivationMode mode() const {
    return mode_;
  }
  const Ops& ops() const {
    return *ops_;
  }
  int lanes() const {
    return pool_->lanes();
  }
  // Bytes this recorder holds for q8 copies, scratch and commands.
  int64_t workspace_bytes() const;

 private:
  struct Touch {
    const std::byte* begin;
    const std::byte* end;
    bool write;
    bool serial;
  };
  struct Q8Slot {
    const std::byte* begin = nullptr;  // of the source
    const std::byte* end = nullptr;
    Shape shape;
    Q8Rows q;
    Buffer memory;
    Attached attached;
  };
  static constexpr int kQ8Slots = 3;

  template <class Args>
  Status trace(Args args);
  template <class Args>
  void append(const Args& args, int64_t work);
  void writes(const Tensor& t);
  void touch(const std::byte* begin, const std::byte* end, bool write);
  template <class Args>
  Status check_compute(const Args& args) const;
  // What an op needs that the recorder makes: q8 copies.
  template <class Args>
  Status prepare(Args&) {
    return {};
  }
  Status prepare(MatmulArgs& args);
  // Records an op as simpler ones, where it has a form that only some backends take. True when that
  // was done.
  template <class Args>
  Result<bool> taken_apart(const Args&) {
    return false;
  }
  Result<bool> taken_apart(const LstmCellArgs& args);
  void touch(const KvCache& cache, bool write);
  void touch(const Q8Rows& q, bool write);
  Status reserve_scratch(int64_t bytes);
  Result<Q8Rows> quantized(const Tensor& x);
  Status grow_slot(Q8Slot& slot, int64_t rows, int64_t cols);
  Region region_of(std::span<const Command> commands) const;
  void run_lane(int lane, int lanes, std::span<const Command> commands);

  const Ops* ops_ = nullptr;
  ThreadPool* pool_ = nullptr;
  Trace* trace_ = nullptr;
  ActivationMode mode_;
  bool rows_alone_ = false;
  std::vector<Command> commands_;
  std::vector<Touch> since_barrier_;  // accesses of commands after the last barrier
  std::vector<Touch> pending_;        // accesses of the command being recorded
  Q8Slot q8_[kQ8Slots];
  int next_slot_ = 0;
  std::vector<Buffer> scratch_;
  int64_t scratch_bytes_ = 0;
  OpProfile* profile_ = nullptr;
};

}  // namespace loom::core
