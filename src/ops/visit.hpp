// The tensors of every op and what the op does with each: visit(args, f) calls f(Tensor&, Access).
// Hazards, lifetimes and relocation all read this one list. Absent (empty) tensors are visited too.
// Memory that is no tensor (q8 copies, KV caches): visit_memory(args, f) calls f(begin, bytes,
// Access) for each piece of it.
#pragma once

#include <cstring>

#include "ops/ops.hpp"

namespace loom::core {

// update: read and written.
enum class Access : uint8_t { read, write, update };

constexpr Access written(bool accumulate) {
  return accumulate ? Access::update : Access::write;
}

template <class F, class... Tensors>
void visit_reads(F&& f, Tensors&... tensors) {
  (f(tensors, Access::read), ...);
}

template <class F>
void visit(MatmulArgs& a, F&& f) {
  if (!a.use_q8) f(a.x, Access::read);
  visit_reads(f, a.w, a.bias);
  f(a.y, Access::write);
}
template <class F>
void visit(QuantiseRowsArgs& a, F&& f) {
  f(a.x, Access::read);
}
template <class F>
void visit(PackArgs& a, F&& f) {
  visit_reads(f, a.src, a.step, a.rows);
  f(a.w, written(!a.rows.empty()));
  f(a.ranges, Access::update);
}
template <class F>
void visit(GatherRowsArgs& a, F&& f) {
  visit_reads(f, a.table, a.ids);
  f(a.y, Access::write);
}
template <class F>
void visit(DistinctRowsArgs& a, F&& f) {
  f(a.ids, Access::read);
  f(a.seen, Access::write);
  f(a.rows, Access::write);
  f(a.first, Access::write);
}
template <class F>
void visit(NormArgs& a, F&& f) {
  visit_reads(f, a.x, a.gamma, a.beta);
  f(a.y, Access::write);
}
template <class F>
void visit(RopeArgs& a, F&& f) {
  visit_reads(f, a.x, a.cos, a.sin);
  f(a.y, Access::write);
}
template <class F>
void visit(KvWriteArgs& a, F&& f) {
  visit_reads(f, a.k, a.v);
}
template <class F>
void visit(AttentionArgs& a, F&& f) {
  f(a.q, Access::read);
  f(a.y, Access::write);
}
template <class F>
void visit(UnaryArgs& a, F&& f) {
  f(a.x, Access::read);
  f(a.y, Access::write);
}
template <class F>
void visit(BinaryArgs& a, F&& f) {
  visit_reads(f, a.a, a.b);
  f(a.y, Access::write);
}
template <class F>
void visit(GatedArgs& a, F&& f) {
  visit_reads(f, a.gate, a.up);
  f(a.y, Access::write);
}
template <class F>
void visit(SoftmaxArgs& a, F&& f) {
  f(a.x, Access::read);
  f(a.y, Access::write);
}
template <class F>
void visit(ReduceArgs& a, F&& f) {
  f(a.x, Access::read);
  f(a.y, Access::write);
}
template <class F>
void visit(ArgmaxArgs& a, F&& f) {
  f(a.x, Access::read);
  f(a.ids, Access::write);
}
template <class F>
void visit(TopkArgs& a, F&& f) {
  f(a.x, Access::read);
  f(a.values, Access::write);
  f(a.ids, Access::write);
}
template <class F>
void visit(DrawArgs& a, F&& f) {
  visit_reads(f, a.values, a.ids);
  f(a.next, Access::write);
}
template <class F>
void visit(ConvertArgs& a, F&& f) {
  visit_reads(f, a.x, a.rows);
  f(a.y, Access::write);
}
template <class F>
void visit(FillArgs& a, F&& f) {
  f(a.y, Access::write);
}
template <class F>
void visit(GemmArgs& a, F&& f) {
  visit_reads(f, a.a, a.b);
  f(a.y, written(a.accumulate));
}
template <class F>
void visit(MatmulDxArgs& a, F&& f) {
  visit_reads(f, a.dy, a.w);
  f(a.dx, written(a.accumulate));
}
template <class F>
void visit(ReduceColsArgs& a, F&& f) {
  f(a.x, Access::read);
  f(a.y, written(a.accumulate));
}
template <class F>
void visit(ScatterAddRowsArgs& a, F&& f) {
  visit_reads(f, a.dy, a.ids);
  f(a.table, Access::update);
}
template <class F>
void visit(UnaryDxArgs& a, F&& f) {
  visit_reads(f, a.x, a.dy);
  f(a.dx, Access::write);
}
template <class F>
void visit(GatedDxArgs& a, F&& f) {
  visit_reads(f, a.gate, a.up, a.dy);
  f(a.dgate, Access::write);
  f(a.dup, Access::write);
}
template <class F>
void visit(NormDxArgs& a, F&& f) {
  visit_reads(f, a.x, a.gamma, a.dy);
  f(a.dx, Access::write);
  f(a.scaled, Access::write);
}
template <class F>
void visit(SoftmaxDxArgs& a, F&& f) {
  visit_reads(f, a.y, a.dy);
  f(a.dx, Access::write);
}
template <class F>
void visit(EntmaxArgs& a, F&& f) {
  f(a.x, Access::read);
  f(a.y, Access::write);
}
template <class F>
void visit(EntmaxDxArgs& a, F&& f) {
  visit_reads(f, a.y, a.dy);
  f(a.dx, Access::write);
}
template <class F>
void visit(ConvArgs& a, F&& f) {
  visit_reads(f, a.x, a.w, a.bias);
  f(a.y, Access::write);
}
template <class F>
void visit(ConvDxArgs& a, F&& f) {
  visit_reads(f, a.dy, a.w, a.bias);
  f(a.dx, written(a.accumulate));
}
template <class F>
void visit(ConvDwArgs& a, F&& f) {
  visit_reads(f, a.x, a.dy);
  f(a.dw, written(a.accumulate));
}
template <class F>
void visit(AttendArgs& a, F&& f) {
  visit_reads(f, a.q, a.k, a.v, a.mask);
  f(a.y, Access::write);
}
template <class F>
void visit(AttendDxArgs& a, F&& f) {
  visit_reads(f, a.q, a.k, a.v, a.dy, a.mask);
  f(a.dq, Access::write);
  f(a.dk, Access::write);
  f(a.dv, Access::write);
}
template <class F>
void visit(LstmCellArgs& a, F&& f) {
  visit_reads(f, a.gates, a.c_before, a.more, a.h_before, a.w);
  f(a.acts, Access::write);
  f(a.c, Access::write);
  f(a.h, Access::write);
}
template <class F>
void visit(LstmCellDxArgs& a, F&& f) {
  visit_reads(f, a.acts, a.c_before, a.c, a.dh, a.dc_next);
  f(a.dgates, Access::write);
  f(a.dc_before, Access::write);
}
template <class F>
void visit(GruCellArgs& a, F&& f) {
  visit_reads(f, a.gx, a.gh, a.h_before);
  f(a.acts, Access::write);
  f(a.h, Access::write);
}
template <class F>
void visit(GruCellDxArgs& a, F&& f) {
  visit_reads(f, a.acts, a.gh, a.h_before, a.dh);
  f(a.dgx, Access::write);
  f(a.dgh, Access::write);
  f(a.dh_before, Access::write);
}
template <class F>
void visit(SquaredDistanceArgs& a, F&& f) {
  visit_reads(f, a.x, a.c);
  f(a.y, Access::write);
}
template <class F>
void visit(RandomArgs& a, F&& f) {
  f(a.step, Access::read);
  f(a.y, Access::write);
}
template <class F>
void visit(LossArgs& a, F&& f) {
  visit_reads(f, a.pred, a.target, a.weight);
  f(a.row_loss, Access::write);
  f(a.dpred, Access::write);
}
template <class F>
void visit(OptimiseArgs& a, F&& f) {
  visit_reads(f, a.g, a.hyper, a.scale, a.rows);
  f(a.p, Access::update);
  f(a.m, Access::update);
  f(a.v, Access::update);
}

template <class F>
void visit_rows(const Q8Rows& q, Access access, F&& f) {
  const auto piece = [&](const auto* data, int64_t count) {
    f(reinterpret_cast<const std::byte*>(data), count * int64_t{sizeof(*data)}, access);
  };
  piece(q.codes, q.rows * q.padded_cols());
  piece(q.scales, q.rows * q.blocks);
  piece(q.sums, q.rows * q.blocks);
  piece(q.half_sums, q.rows * q.blocks);
}
template <class F>
void visit_cache(const KvCache& cache, Access access, F&& f) {
  const int64_t bytes = cache.key_floats() * int64_t{sizeof(float)};
  f(reinterpret_cast<const std::byte*>(cache.keys), bytes, access);
  f(reinterpret_cast<const std::byte*>(cache.values), bytes, access);
}
template <class Args, class F>
void visit_memory(const Args&, F&&) {}
template <class F>
void visit_memory(const MatmulArgs& a, F&& f) {
  if (a.use_q8) visit_rows(a.q8, Access::read, f);
}
template <class F>
void visit_memory(const QuantiseRowsArgs& a, F&& f) {
  visit_rows(a.q, Access::write, f);
}
template <class F>
void visit_memory(const KvWriteArgs& a, F&& f) {
  visit_cache(a.cache, Access::update, f);
}
template <class F>
void visit_memory(const AttentionArgs& a, F&& f) {
  visit_cache(a.cache, Access::read, f);
}

// The arguments of a command, typed: f(args) with a reference to a copy that is written back.
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

template <class F>
void visit_command(Command& command, F&& f) {
  with_args(command, [&](auto& args) { visit(args, f); });
}

}  // namespace loom::core
