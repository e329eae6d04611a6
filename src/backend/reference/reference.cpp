// The tables of the reference backend: one body per row of ops.def and compute type.
#include "backend/reference/reference.hpp"

#include "backend/reference/kernels.hpp"
#include "backend/reference/training/training_rows.hpp"

namespace loom::core {
namespace {

template <class T>
Ops make_table(std::string_view name, DType compute) {
  Ops ops;
#define LOOM_OP(op, Args)                                          \
  if constexpr ((std::is_same_v<T, float> || !f32_only<Args>()) && \
                (kTrains || !of_training(#op))) {                  \
    ops.op = reference::op<T>;                                     \
  }
#include "ops/ops.def"
#undef LOOM_OP
  ops.name = name;
  ops.compute = compute;
  return ops;
}

}  // namespace

const Ops& reference_ops() {
  static const Ops table = make_table<float>("reference", DType::f32);
  return table;
}

const Ops& reference_ops_f64() {
  static const Ops table = make_table<double>("reference-f64", DType::f64);
  return table;
}

}  // namespace loom::core
