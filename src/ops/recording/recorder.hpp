// Recorder: the interface that layers record ops with. Its typed methods check shapes and append
// commands. flush() runs the list in one parallel region on the CPU, or sends it to the device. A
// barrier is inserted only if a command touches memory that an earlier one wrote (or writes what an
// earlier one read). Small commands run on lane 0 without barriers.
//
// The recorder manages quantized activations (rule 3 of docs/numerics.md). The first matmul over
// integer-path weights that reads x adds one quantize_rows; later matmuls over the same x share it.
//
// A recorder over a Trace only collects commands (ops/recording/trace.hpp): nothing runs.
#pragma once

#include <span>
#include <vector>

#include "ops/families/fwd.hpp"
#include "ops/ops.hpp"

namespace loom::core {

// Nanoseconds and calls per op, measured by flush() on request.
struct OpProfile {
  int64_t nanoseconds[kOpCount] = {};
  int64_t calls[kOpCount] = {};
};

class Recorder {
 public:
  Recorder(const Ops& ops, ThreadPool& pool, ActivationMode mode = ActivationMode::q8);
  explicit Recorder(Trace& trace) : trace_(&trace), mode_(ActivationMode::f32) {}

  // Reserves memory for `commands`, for q8 copies of activations of up to rows x cols, and for
  // attention over `positions`. Nothing is allocated later.
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

  // Runs the recorded commands and keeps them for the next run.
  Status run();
  // Runs commands [begin, end) of them.
  Status run(int64_t begin, int64_t end);
  int64_t commands() const {
    return static_cast<int64_t>(commands_.size());
  }
  // Runs the recorded commands and drops them.
  Status flush();
  // Drops the recorded commands without running them.
  void discard();
  // Moves the recorded commands into `list`, replacing its own. The list may run while its tensors
  // live, whatever is recorded or run meanwhile. The q8 copies keep their addresses within the
  // limits of reserve().
  void take(std::vector<Command>& list);
  Status run(std::span<const Command> list);

  // On a device, makes each row have the same bits among any number of rows, as on the CPU
  // (Device::execute_rows_alone()).
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
  // Bytes of this recorder for q8 copies, scratch and commands.
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
  // Makes what an op needs from the recorder: q8 copies.
  template <class Args>
  Status prepare(Args&) {
    return {};
  }
  Status prepare(MatmulArgs& args) {
    return prepare_product(args);
  }
  Status prepare(ExpertMatmulArgs& args) {
    return prepare_product(args);
  }
  template <class Args>
  Status prepare_product(Args& args);
  // Records an op as simpler ones, if it has a form that only some backends support. True if it
  // did.
  template <class Args>
  Result<bool> decompose(const Args&) {
    return false;
  }
  Result<bool> decompose(const LstmCellArgs& args);
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
