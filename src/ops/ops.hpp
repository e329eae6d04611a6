// Ops: the interface of a backend. It has one kernel pointer per row of ops.def; every lane of a
// parallel region runs the kernel on its own share of the outputs. A CPU backend starts as a copy
// of the reference table and gets faster row by row. A device backend sets `device` and translates
// whole command lists instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "base/threads/thread_pool.hpp"
#include "ops/args.hpp"
#include "ops/op_id.hpp"
#include "ops/recording/device.hpp"

namespace loom::core {

// The row of ops.def for arguments of this type.
template <class Args>
constexpr OpId op_of();
#define LOOM_OP(name, Args)      \
  template <>                    \
  constexpr OpId op_of<Args>() { \
    return OpId::name;           \
  }
#include "ops/ops.def"
#undef LOOM_OP

// The caller of a kernel: lane `index` of `count`, with private scratch memory.
struct Lane {
  int index = 0;
  int count = 1;
  std::byte* scratch = nullptr;
  int64_t scratch_bytes = 0;

  LOOM_INLINE LaneRange range(int64_t items, int64_t grain = 1) const {
    return lane_range(items, grain, index, count);
  }
};

struct Command;

struct Ops {
  std::string_view name;
  // The type of activations and of plain parameters: f32, or f64 in the oracle of gradients. A null
  // row has no form for this type; the recorder refuses it.
  DType compute = DType::f32;
#define LOOM_OP(name, Args) void (*name)(const Args&, const Lane&) = nullptr;
#include "ops/ops.def"
#undef LOOM_OP
  // Whether lstm_cell supports products (LstmCellArgs::w) with f32 activations. Used for widths
  // that are multiples of 16.
  bool lstm_products = false;
  // Only for device backends: the memory, and the submission of whole lists. The rows above then
  // only say that the op exists.
  Device* device = nullptr;
  // Only for device backends: the table for host work before and after a run.
  const Ops* host = nullptr;
};

inline const Ops& host_ops(const Ops& ops) {
  return ops.device == nullptr ? ops : *ops.host;
}
// Copy the values of tensors to the memory of `ops`, and back. Nothing to do if that is the host.
Status to_device(const Ops& ops, const Tensor& t);
Status to_host(const Ops& ops, std::span<const Tensor> tensors);
inline Status to_host(const Ops& ops, std::initializer_list<Tensor> tensors) {
  return to_host(ops, std::span(tensors.begin(), tensors.size()));
}
MemoryRange range_of(const Tensor& t);
MemoryRange range_of(const Buffer& buffer);
// Zero-filled memory for tensors of `ops`. Device memory uses no host memory until the host touches
// it.
Result<Buffer> allocate_for(const Ops& ops, int64_t bytes);

// One recorded op: its arguments by value, and its relation to its neighbours.
struct Command {
  static constexpr size_t kMaxArgs = 1016;
  // A defaulted constructor would let value-initialization clear the arguments each time.
  Command() {}  // NOLINT(modernize-use-equals-default)
  OpId op = OpId::fill;
  bool serial = false;   // too small to share: lane 0 runs it alone
  bool barrier = false;  // all lanes meet before it
  int64_t work = 0;      // an estimate (ops/recording/visit.hpp)
  alignas(8) std::byte args[kMaxArgs];
};

// Whether a backend has a body for an op.
bool has_body(const Ops& ops, OpId op);
// Runs one command on one lane of a CPU backend.
void run_command(const Ops& ops, const Command& command, const Lane& lane);

}  // namespace loom::core
