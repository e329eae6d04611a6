// Ops: what a backend is. One kernel pointer per row of ops.def, each run by every lane of a
// parallel region on its own share of the outputs. A CPU backend starts as a copy of the reference
// table and gets faster row by row; a device backend sets `device` and translates whole command
// lists instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "ops/args.hpp"
#include "ops/device.hpp"
#include "ops/op_id.hpp"

namespace loom::core {

// The row that arguments of this type belong to.
template <class Args>
constexpr OpId op_of();
#define LOOM_OP(name, Args)      \
  template <>                    \
  constexpr OpId op_of<Args>() { \
    return OpId::name;           \
  }
#include "ops/ops.def"
#undef LOOM_OP

// Who is asking: lane `index` of `count`, with private scratch memory.
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
  // The type of activations and of plain parameters: f32, or f64 in the oracle of gradients. A row
  // that is null has no form for this type; the recorder refuses it.
  DType compute = DType::f32;
#define LOOM_OP(name, Args) void (*name)(const Args&, const Lane&) = nullptr;
#include "ops/ops.def"
#undef LOOM_OP
  // Has this lstm_cell, with f32 activations, a form with products (LstmCellArgs::w)? Asked for
  // widths that are multiples of 16.
  bool lstm_products = false;
  // Device backends only: where the memory is, and what runs a whole list in one submission. The
  // rows above then only say that the op exists.
  Device* device = nullptr;
  // Device backends only: the table for what the host does itself, before a run and after.
  const Ops* host = nullptr;
};

inline const Ops& host_ops(const Ops& ops) {
  return ops.device == nullptr ? ops : *ops.host;
}
// The values of tensors to where `ops` computes, and back. Nothing where that is the host.
Status to_device(const Ops& ops, const Tensor& t);
Status to_host(const Ops& ops, std::span<const Tensor> tensors);
inline Status to_host(const Ops& ops, std::initializer_list<Tensor> tensors) {
  return to_host(ops, std::span(tensors.begin(), tensors.size()));
}
MemoryRange range_of(const Tensor& t);
MemoryRange range_of(const Buffer& buffer);
// Memory for tensors of `ops`: zero-filled; that of a device takes no room on the host until it is
// touched there.
Result<Buffer> allocate_for(const Ops& ops, int64_t bytes);

// One recorded op: its arguments by value, and how it meets its neighbours.
struct Command {
  static constexpr size_t kMaxArgs = 768;
  // Not defaulted: value-initialization would clear the arguments each time.
  Command() {}  // NOLINT(modernize-use-equals-default)
  OpId op = OpId::fill;
  bool serial = false;   // too small to share: lane 0 runs it alone
  bool barrier = false;  // all lanes meet before it
  int64_t work = 0;      // an estimate (ops/visit.hpp)
  alignas(8) std::byte args[kMaxArgs];
};

// Whether a backend has a body for an op.
bool has_body(const Ops& ops, OpId op);
// Runs one command on one lane of a CPU backend.
void run_command(const Ops& ops, const Command& command, const Lane& lane);

}  // namespace loom::core
