// The memory and the work of a command, derived from its arguments (ops/operands.hpp). visit(args,
// f) calls f(tensor, Access) for every tensor, absent (empty) ones too. visit_memory(args, f) calls
// f(begin, bytes, Access) for memory that is not a tensor (q8 copies, KV caches). Hazards,
// lifetimes and relocation use this.
#pragma once

#include <cstring>
#include <utility>

#include "ops/ops.hpp"

namespace loom::core {

// With constant arguments, f gets constant tensors.
template <class Args, class F>
void visit(Args& args, F&& f) {
  Args::operands(args, f);
}

// f(Q8Rows or KvCache, Access).
template <class Args, class F>
void visit_parts(const Args& args, F&& f) {
  if constexpr (requires { Args::memory(args, f); }) Args::memory(args, f);
}

template <class F>
void visit_pieces(const Q8Rows& q, Access access, F&& f) {
  const auto piece = [&](const auto* data, int64_t count) {
    f(reinterpret_cast<const std::byte*>(data), count * int64_t{sizeof(*data)}, access);
  };
  piece(q.codes, q.rows * q.padded_cols());
  piece(q.scales, q.rows * q.blocks);
  piece(q.sums, q.rows * q.blocks);
  piece(q.half_sums, q.rows * q.blocks);
}
template <class F>
void visit_pieces(const KvCache& cache, Access access, F&& f) {
  f(cache.keys, cache.bytes(), access);
  f(cache.values, cache.bytes(), access);
}
template <class Args, class F>
void visit_memory(const Args& args, F&& f) {
  visit_parts(args, [&](const auto& part, Access access) { visit_pieces(part, access, f); });
}

// The work of an op, in values touched once (two multiplications count as one). It decides whether
// sharing a command between lanes pays. An estimate; no result depends on it.
template <class Args>
int64_t work_of(const Args& args) {
  if constexpr (requires { args.work(); }) {
    return args.work();
  } else {
    int64_t values = -1;
    visit(args, [&](const Tensor& t, Access) {
      if (values < 0) values = t.shape.count();
    });
    return values;
  }
}

// Calls f(args) with the typed arguments of a command: a reference to a copy that is written back.
template <class F>
void with_args(Command& command, F&& f) {
  switch (command.op) {
#define LOOM_OP(name, Args)                         \
  case OpId::name: {                                \
    Args args;                                      \
    std::memcpy(&args, command.args, sizeof(Args)); \
    f(args);                                        \
    std::memcpy(command.args, &args, sizeof(Args)); \
    break;                                          \
  }
#include "ops/ops.def"
#undef LOOM_OP
  }
}
// The same for a constant command: f(const args).
template <class F>
void with_args(const Command& command, F&& f) {
  switch (command.op) {
#define LOOM_OP(name, Args)                         \
  case OpId::name: {                                \
    Args args;                                      \
    std::memcpy(&args, command.args, sizeof(Args)); \
    f(std::as_const(args));                         \
    break;                                          \
  }
#include "ops/ops.def"
#undef LOOM_OP
  }
}

template <class F>
void visit_command(Command& command, F&& f) {
  with_args(command, [&](auto& args) { visit(args, f); });
}
template <class F>
void visit_command(const Command& command, F&& f) {
  with_args(command, [&](const auto& args) { visit(args, f); });
}

}  // namespace loom::core
