// Checks and gradient rules of products, of the packing of weights and of conversions. As in every
// file of ops, a check first tests each tensor alone, then their relations, then shared memory. A
// check passes exactly if the reference body of the op is well-defined for the arguments. It does
// not read ids and other values of tensors.
#include "base/numbers/checked.hpp"
#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart;
using rules::apart_from;
using rules::disagree;
using rules::in_place_or_apart;
using rules::matrix;
using rules::op_error;
using rules::packed;
using rules::plain;
using rules::same_shape;

bool is_ieee(DType dtype) {
  return dtype_info(dtype).kind == NumberKind::ieee;
}

Status packed_rows(const PackArgs& args) {
  LOOM_TRY(plain("pack", "src", args.src, DType::f32));
  LOOM_TRY(rules::rows("pack", args.rows, "w", args.w));
  LOOM_TRY(rules::rows("pack", args.rows, "ranges", args.ranges));
  if (args.scope == ScaleScope::per_row && r16_packs_rows(args.w.dtype)) return {};
  return op_error("pack", "rows alone need a scale per row; ", dtype_name(args.w.dtype),
                  " has one of the tensor here");
}

Status frozen_ranges(const PackArgs& args) {
  const int values = r16_frozen_values(args.w.dtype);
  if (values == 0) {
    return op_error("pack", dtype_name(args.w.dtype), " has no scale per row whose range is held");
  }
  if (!(args.band >= 0.0f && args.band < 1.0f))
    return op_error("pack", "band is ", args.band, ": it must be in [0, 1)");
  const int64_t scales = args.scope == ScaleScope::per_tensor ? 1 : args.w.rows();
  LOOM_TRY(plain("pack", "src", args.src, DType::f32));
  LOOM_TRY(rules::vector("pack", "ranges", args.ranges, scales * values, DType::f32));
  LOOM_TRY(apart("pack", "ranges", args.ranges, "src", args.src));
  return apart("pack", "ranges", args.ranges, "w", args.w);
}

}  // namespace

Status check(const MatmulArgs& args) {
  const auto& [x, w, bias, y, q8, activation, use_q8] = args;
  LOOM_TRY(plain("matmul", "x", x));
  LOOM_TRY(packed("matmul", "w", w));
  LOOM_TRY(plain("matmul", "y", y, x.dtype));
  if (x.cols() != w.cols())
    return disagree("matmul", "x", x, "w", w, "both must have the same last extent");
  if (y.rows() != x.rows() || y.cols() != w.rows()) {
    return op_error("matmul", "y ", y.shape.str(), " does not fit x ", x.shape.str(), " and w ",
                    w.shape.str(), ": it must have ", x.rows(), " rows of ", w.rows());
  }
  if (!bias.empty()) {
    LOOM_TRY(rules::vector("matmul", "bias", bias, w.rows(), x.dtype));
    LOOM_TRY(apart("matmul", "y", y, "bias", bias));
  }
  LOOM_TRY(apart("matmul", "y", y, "x", x));
  return apart("matmul", "y", y, "w", w);
}

// y = act(x w^T + bias): with dz = dy act', dx = dz w, dw = dz^T x, dbias = column sums of dz.
Status gradient_rule(Differentiator& d, const MatmulArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Tensor dz, before_activation(d, a.activation, a.y, dy));
  LOOM_TRY(d.note_product({a.w, a.bias, a.x, dz}));
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x, true));
  if (!x.out.empty()) LOOM_TRY(d.ops().matmul_dx({dz, a.w, x.out, x.accumulate}));
  LOOM_ASSIGN(const Target w, d.gradient_target(a.w, true));
  if (!w.out.empty()) LOOM_TRY(d.ops().gemm({dz, a.x, w.out, true, false, w.accumulate}));
  LOOM_ASSIGN(const Target b, d.gradient_target(a.bias, true));
  if (!b.out.empty()) LOOM_TRY(d.ops().reduce_cols({dz, b.out, b.accumulate}));
  return {};
}

Status check(const QuantizeRowsArgs& args) {
  const Tensor& x = args.x;
  const Q8Rows& q = args.q;
  LOOM_TRY(plain("quantize_rows", "x", x, DType::f32));
  if (q.rows != x.rows() || q.cols != x.cols() || q.blocks != ceil_div(x.cols(), 32)) {
    return op_error("quantize_rows", "x ", x.shape.str(), " does not fit q: ", q.rows, " rows of ",
                    q.cols, " values in ", q.blocks, " blocks of 32");
  }
  const bool memory =
      q.codes != nullptr && q.scales != nullptr && q.sums != nullptr && q.half_sums != nullptr;
  if (q.rows * q.blocks > 0 && !memory) return op_error("quantize_rows", "q has no memory");
  return {};
}

Status check(const PackArgs& args) {
  if (args.stochastic && !r16_can_dither(args.w.dtype)) {
    return op_error(
        "pack", dtype_name(args.w.dtype),
        " cannot be rounded stochastically: float16, bfloat16, fp8 and integers of 8 and "
        "16 bits can");
  }
  if (args.stochastic && args.scope == ScaleScope::per_tensor)
    return op_error("pack", "stochastic rounding takes a scale per row");
  LOOM_TRY(plain("pack", "src", args.src));
  LOOM_TRY(packed("pack", "w", args.w));
  LOOM_TRY(same_shape("pack", "src", args.src, "w", args.w));
  LOOM_TRY(rules::vector("pack", "src", args.src, args.src.shape.count(), args.src.dtype));
  if (!args.ranges.empty()) LOOM_TRY(frozen_ranges(args));
  if (!args.rows.empty()) LOOM_TRY(packed_rows(args));
  return apart("pack", "w", args.w, "src", args.src);
}

Status check(const ConvertArgs& args) {
  const auto& [x, y, rows] = args;
  LOOM_TRY(rules::rows("convert", rows, "y", y));
  if (x.layout == Layout::r16) {
    LOOM_TRY(packed("convert", "x", x));
    LOOM_TRY(plain("convert", "y", y));
  } else {
    if (!is_ieee(x.dtype) || !is_ieee(y.dtype)) {
      return op_error("convert", "x is ", dtype_name(x.dtype), " and y is ", dtype_name(y.dtype),
                      ": plain rows are converted between float types of 16 bits or more only");
    }
    LOOM_TRY(plain("convert", "x", x, x.dtype));
    LOOM_TRY(plain("convert", "y", y, y.dtype));
  }
  LOOM_TRY(same_shape("convert", "x", x, "y", y));
  return in_place_or_apart("convert", "y", y, "x", x);
}

Status check(const GemmArgs& args) {
  const auto& [a, b, y, a_transposed, b_transposed, accumulate] = args;
  LOOM_TRY(plain("gemm", "a", a));
  LOOM_TRY(plain("gemm", "b", b, a.dtype));
  const int64_t m = a_transposed ? a.cols() : a.rows();
  const int64_t k = a_transposed ? a.rows() : a.cols();
  const int64_t n = b_transposed ? b.rows() : b.cols();
  const int64_t b_k = b_transposed ? b.cols() : b.rows();
  if (k != b_k) {
    return disagree("gemm", "a", a, "b", b, cat("their inner extents are ", k, " and ", b_k));
  }
  LOOM_TRY(matrix("gemm", "y", y, m, n, a.dtype));
  return apart_from("gemm", "y", y, {{"a", a}, {"b", b}});
}

// C = A B: dA = dC B^T, dB = A^T dC, each transposed where its operand is.
Status gradient_rule(Differentiator& d, const GemmArgs& g) {
  const Tensor dy = d.of(g.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target a, d.gradient_target(g.a, true));
  if (!a.out.empty()) {
    GemmArgs da{dy, g.b, a.out, false, !g.b_transposed, a.accumulate};
    if (g.a_transposed) da = {g.b, dy, a.out, g.b_transposed, true, a.accumulate};
    LOOM_TRY(d.ops().gemm(da));
  }
  LOOM_ASSIGN(const Target b, d.gradient_target(g.b, true));
  if (b.out.empty()) return {};
  GemmArgs db{g.a, dy, b.out, !g.a_transposed, false, b.accumulate};
  if (g.b_transposed) db = {dy, g.a, b.out, true, g.a_transposed, b.accumulate};
  return d.ops().gemm(db);
}

Status check(const MatmulDxArgs& args) {
  const auto& [dy, w, dx, accumulate] = args;
  LOOM_TRY(plain("matmul_dx", "dy", dy));
  LOOM_TRY(packed("matmul_dx", "w", w));
  if (dy.cols() != w.rows()) {
    return disagree("matmul_dx", "dy", dy, "w", w, "dy must be as wide as w has rows");
  }
  LOOM_TRY(matrix("matmul_dx", "dx", dx, dy.rows(), w.cols(), dy.dtype));
  return apart_from("matmul_dx", "dx", dx, {{"dy", dy}, {"w", w}});
}

// As a forward op: y = a w, so da = dy w^T and dw = a^T dy.
Status gradient_rule(Differentiator& d, const MatmulDxArgs& a) {
  const Tensor dy = d.of(a.dx);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.dy));
  if (!x.out.empty()) {
    LOOM_TRY(d.ops().matmul({dy, a.w, {}, x.out}));
    LOOM_TRY(d.accumulate(x));
  }
  LOOM_ASSIGN(const Target w, d.gradient_target(a.w, true));
  return w.out.empty() ? Status{} : d.ops().gemm({a.dy, dy, w.out, true, false, w.accumulate});
}

Status check(const SquaredDistanceArgs& args) {
  const auto& [x, c, y] = args;
  LOOM_TRY(plain("squared_distance", "x", x));
  LOOM_TRY(packed("squared_distance", "c", c));
  if (x.cols() != c.cols()) {
    return disagree("squared_distance", "x", x, "c", c, "both must have the same last extent");
  }
  LOOM_TRY(matrix("squared_distance", "y", y, x.rows(), c.rows(), x.dtype));
  return apart_from("squared_distance", "y", y, {{"x", x}, {"c", c}});
}

// y = sum (x - c)^2: dx = 2 (x rowsum(dy) - dy C), dc = 2 (colsum(dy) C - dy^T x).
Status gradient_rule(Differentiator& d, const SquaredDistanceArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  const int64_t rows = a.x.rows(), centres = a.c.rows(), width = a.x.cols();
  const auto twice_difference = [&](const Tensor& t, const Tensor& factor, const Tensor& other,
                                    const Tensor& out) -> Status {
    const Tensor scaled = d.fresh(t.shape), difference = d.fresh(t.shape);
    LOOM_TRY(d.ops().binary({t, factor, scaled, BinaryKind::mul}));
    LOOM_TRY(d.ops().binary({scaled, other, difference, BinaryKind::sub}));
    return d.ops().binary({difference, difference, out, BinaryKind::add});
  };
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (!x.out.empty()) {
    const Tensor sums = d.fresh(Shape{rows, 1}), mixed = d.fresh(Shape{rows, width});
    LOOM_TRY(d.ops().reduce({dy, sums, ReduceKind::sum}));
    LOOM_TRY(d.ops().matmul_dx({dy, a.c, mixed}));
    LOOM_TRY(twice_difference(a.x, sums, mixed, x.out));
    LOOM_TRY(d.accumulate(x));
  }
  LOOM_ASSIGN(const Target c, d.gradient_target(a.c));
  if (c.out.empty()) return {};
  const Tensor sums = d.fresh(Shape{centres}), mixed = d.fresh(Shape{centres, width});
  const Tensor decoded = d.fresh(Shape{centres, width});
  LOOM_TRY(d.ops().reduce_cols({dy, sums}));
  LOOM_TRY(d.ops().convert({a.c, decoded}));
  LOOM_TRY(d.ops().gemm({dy, a.x, mixed, true, false}));
  LOOM_TRY(twice_difference(decoded, matrix_over(sums, centres, 1), mixed, c.out));
  return d.accumulate(c);
}

}  // namespace loom::core
