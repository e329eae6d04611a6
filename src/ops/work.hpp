// How much an op has to do, in values touched once (two multiplications count as one): what decides
// whether a command is worth sharing between lanes. An estimate; nothing about a result depends on
// it.
#pragma once

#include "ops/args.hpp"

namespace loom::core {

// A row of a large table comes from memory far away: about 60 ns.
inline constexpr int64_t kFarRow = 1024;

inline int64_t work(const MatmulArgs& a) {
  return a.y.rows() * a.y.cols() * a.x.cols() / 2;
}
inline int64_t work(const GemmArgs& a) {
  const int64_t k = a.a_transposed ? a.a.rows() : a.a.cols();
  return a.y.rows() * a.y.cols() * k / 2;
}
inline int64_t work(const MatmulDxArgs& a) {
  return a.dx.rows() * a.dx.cols() * a.dy.cols() / 2;
}
inline int64_t work(const PackArgs& a) {
  const int64_t rows = a.rows.empty() ? a.src.rows() : a.rows.shape.count();
  return 16 * rows * a.src.cols();
}
inline int64_t work(const AttentionArgs& a) {
  return a.q.shape.count() * a.length;
}
inline int64_t work(const AttendArgs& a) {
  return a.q.shape.count() * (a.q.rows() / a.sequences);
}
inline int64_t work(const AttendDxArgs& a) {
  return 3 * a.q.shape.count() * (a.q.rows() / a.sequences);
}
inline int64_t work(const ConvArgs& a) {
  return a.y.shape.count() * a.shape.patch() / 2;
}
inline int64_t work(const ConvDxArgs& a) {
  return a.dy.shape.count() * a.shape.patch() / 2;
}
inline int64_t work(const ConvDwArgs& a) {
  return a.dy.shape.count() * a.shape.patch() / 2;
}
inline int64_t work(const SquaredDistanceArgs& a) {
  return a.y.shape.count() * a.x.cols() / 2;
}
inline int64_t work(const KvWriteArgs& a) {
  return a.k.shape.count();
}
inline int64_t work(const GatedArgs& a) {
  return a.y.shape.count();
}
inline int64_t work(const GatedDxArgs& a) {
  return 4 * a.dy.shape.count();
}
inline int64_t work(const ScatterAddRowsArgs& a) {
  return a.dy.shape.count() + kFarRow * a.dy.rows();
}
inline int64_t work(const LstmCellArgs& a) {
  return (4 + a.h_before.cols() / 2) * a.gates.shape.count();
}
inline int64_t work(const LstmCellDxArgs& a) {
  return 2 * a.acts.shape.count();
}
inline int64_t work(const GruCellArgs& a) {
  return 4 * a.gx.shape.count();
}
inline int64_t work(const GruCellDxArgs& a) {
  return 2 * a.acts.shape.count();
}
inline int64_t work(const RandomArgs& a) {
  return 16 * a.y.shape.count();
}
inline int64_t work(const DrawArgs& a) {
  return 16 * a.values.shape.count();
}
inline int64_t work(const LossArgs& a) {
  return 4 * a.pred.shape.count();
}
inline int64_t work(const OptimiseArgs& a) {
  return 2 * a.g.shape.count();
}
inline int64_t work(const FillArgs& a) {
  return a.y.shape.count();
}
inline int64_t work(const GatherRowsArgs& a) {
  return a.y.shape.count() + kFarRow * a.y.rows();
}
inline int64_t work(const BinaryArgs& a) {
  return a.y.shape.count();
}
inline int64_t work(const ConvertArgs& a) {
  return a.rows.empty() ? a.y.shape.count() : a.rows.shape.count() * a.y.cols();
}
inline int64_t work(const DistinctRowsArgs&) {
  return 0;  // lane 0 does it
}
inline int64_t work(const UnaryDxArgs& a) {
  return a.dy.shape.count();
}
inline int64_t work(const SoftmaxDxArgs& a) {
  return a.dy.shape.count();
}
inline int64_t work(const EntmaxDxArgs& a) {
  return 4 * a.dy.shape.count();
}
inline int64_t work(const EntmaxArgs& a) {
  return 8 * a.x.shape.count();
}
// Everything else goes over x once.
template <class Args>
int64_t work(const Args& a) {
  return a.x.shape.count();
}

}  // namespace loom::core
