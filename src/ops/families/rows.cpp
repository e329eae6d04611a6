// Checks and gradient rules of row-wise ops. products.cpp describes the layout of a check.
#include <limits>

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
using rules::like;
using rules::Named;
using rules::op_error;
using rules::packed_or_plain;
using rules::plain;
using rules::rows_in_rows_out;
using rules::same_shape;

// Rows of the gradient are those of dy, added up at the first occurrence of their id.
Status gather_sparse(Differentiator& d, const GatherRowsArgs& a, const Tensor& dy) {
  const Shape row_positions{a.ids.shape.count()};
  const Tensor rows = d.fresh(row_positions, DType::i32),
               first = d.fresh(row_positions, DType::i32);
  LOOM_ASSIGN(const Tensor sums, d.place_rows(a.table, rows));
  if (sums.empty()) return {};
  const Tensor seen = d.fresh(Shape{a.table.rows()}, DType::i32);
  LOOM_TRY(d.ops().distinct_rows({a.ids, seen, rows, first, a.skip}));
  LOOM_TRY(d.ops().fill({sums, 0.0f}));
  return d.ops().scatter_add_rows({dy, first, sums, -1});
}

// Adds column sums of t to the gradient of the parameter; cut into segments if the parameter is as
// wide as one.
Status give_columns(Differentiator& d, const Tensor& parameter, const Tensor& t) {
  LOOM_ASSIGN(const Target p, d.gradient_target(parameter, true));
  if (p.out.empty()) return {};
  const int64_t width = parameter.shape.count();
  return d.ops().reduce_cols({matrix_over(t, t.shape.count() / width, width), p.out, p.accumulate});
}

}  // namespace

Status check(const GatherRowsArgs& args) {
  const auto& [table, ids, y, skip, sparse] = args;
  LOOM_TRY(plain("gather_rows", "y", y));
  LOOM_TRY(packed_or_plain("gather_rows", "table", table, y.dtype));
  LOOM_TRY(rules::vector("gather_rows", "ids", ids, y.rows(), DType::i32));
  if (y.cols() != table.cols()) {
    return disagree("gather_rows", "table", table, "y", y, "both must have the same last extent");
  }
  LOOM_TRY(apart("gather_rows", "y", y, "ids", ids));
  return apart("gather_rows", "y", y, "table", table);
}

Status gradient_rule(Differentiator& d, const GatherRowsArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  if (a.sparse) return gather_sparse(d, a, dy);
  LOOM_ASSIGN(const Target table, d.gradient_target(a.table, true));
  if (table.out.empty()) return {};
  if (!table.accumulate) LOOM_TRY(d.ops().fill({table.out, 0.0f}));
  return d.ops().scatter_add_rows({dy, a.ids, table.out, a.skip});
}

Status check(const DistinctRowsArgs& args) {
  const auto& [ids, seen, rows, first, skip] = args;
  const int64_t count = ids.shape.count();
  LOOM_TRY(rules::vector("distinct_rows", "ids", ids, count, DType::i32));
  LOOM_TRY(rules::vector("distinct_rows", "seen", seen, seen.shape.count(), DType::i32));
  LOOM_TRY(rules::vector("distinct_rows", "rows", rows, count, DType::i32));
  LOOM_TRY(rules::vector("distinct_rows", "first", first, count, DType::i32));
  LOOM_TRY(apart("distinct_rows", "seen", seen, "ids", ids));
  LOOM_TRY(apart("distinct_rows", "rows", rows, "ids", ids));
  LOOM_TRY(apart("distinct_rows", "rows", rows, "seen", seen));
  LOOM_TRY(apart("distinct_rows", "first", first, "ids", ids));
  LOOM_TRY(apart("distinct_rows", "first", first, "seen", seen));
  return apart("distinct_rows", "first", first, "rows", rows);
}

Status check(const ScatterAddRowsArgs& args) {
  const auto& [dy, ids, table, skip] = args;
  LOOM_TRY(plain("scatter_add_rows", "dy", dy));
  LOOM_TRY(plain("scatter_add_rows", "table", table, dy.dtype));
  LOOM_TRY(rules::vector("scatter_add_rows", "ids", ids, dy.rows(), DType::i32));
  if (dy.cols() != table.cols()) {
    return disagree("scatter_add_rows", "dy", dy, "table", table,
                    "both must have the same last extent");
  }
  return apart_from("scatter_add_rows", "table", table, {{"dy", dy}, {"ids", ids}});
}

Status check(const NormArgs& args) {
  const auto& [x, gamma, beta, y, eps, kind, segments] = args;
  LOOM_TRY(rows_in_rows_out("norm", x, y));
  LOOM_TRY(rules::segments("norm", x, segments, eps));
  if (kind == NormKind::rms && !beta.empty()) return op_error("norm", "rms takes no beta");
  LOOM_TRY(rules::norm_parameter("norm", "gamma", gamma, x, segments));
  LOOM_TRY(rules::norm_parameter("norm", "beta", beta, x, segments));
  LOOM_TRY(apart("norm", "y", y, "gamma", gamma));
  return apart("norm", "y", y, "beta", beta);
}

Status gradient_rule(Differentiator& d, const NormArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  NormDxArgs n;
  n.x = a.x;
  n.gamma = a.gamma;
  n.dy = dy;
  n.eps = a.eps;
  n.kind = a.kind;
  n.segments = a.segments;
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  n.dx = x.out.empty() ? d.fresh(a.x.shape) : x.out;
  if (d.wants(a.gamma)) n.scaled = d.fresh(a.x.shape);
  LOOM_TRY(d.ops().norm_dx(n));
  LOOM_TRY(d.accumulate(x));
  if (!n.scaled.empty()) LOOM_TRY(give_columns(d, a.gamma, n.scaled));
  return d.wants(a.beta) ? give_columns(d, a.beta, dy) : Status{};
}

Status check(const NormDxArgs& args) {
  const auto& [x, gamma, dy, dx, scaled, eps, kind, segments] = args;
  LOOM_TRY(plain("norm_dx", "x", x));
  LOOM_TRY(plain("norm_dx", "dy", dy, x.dtype));
  LOOM_TRY(same_shape("norm_dx", "x", x, "dy", dy));
  LOOM_TRY(rules::segments("norm_dx", x, segments, eps));
  LOOM_TRY(rules::norm_parameter("norm_dx", "gamma", gamma, x, segments));
  for (const Named& out : {Named{"dx", dx}, Named{"scaled", scaled}}) {
    if (out.name == "scaled" && scaled.empty()) continue;
    LOOM_TRY(like("norm_dx", out.name, out.t, "x", x));
    LOOM_TRY(in_place_or_apart("norm_dx", out.name, out.t, "dy", dy));
    LOOM_TRY(apart("norm_dx", out.name, out.t, "gamma", gamma));
  }
  return apart("norm_dx", "dx", dx, "scaled", scaled);
}

Status check(const SoftmaxArgs& args) {
  return rows_in_rows_out("softmax", args.x, args.y);
}

Status gradient_rule(Differentiator& d, const SoftmaxArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  LOOM_TRY(d.ops().softmax_dx({a.y, dy, x.out, a.scale}));
  return d.accumulate(x);
}

Status check(const SoftmaxDxArgs& args) {
  const auto& [y, dy, dx, scale] = args;
  LOOM_TRY(plain("softmax_dx", "y", y));
  LOOM_TRY(plain("softmax_dx", "dy", dy, y.dtype));
  LOOM_TRY(same_shape("softmax_dx", "y", y, "dy", dy));
  LOOM_TRY(like("softmax_dx", "dx", dx, "y", y));
  return in_place_or_apart("softmax_dx", "dx", dx, "dy", dy);
}

Status check(const EntmaxArgs& args) {
  LOOM_TRY(plain("entmax", "x", args.x));
  LOOM_TRY(like("entmax", "y", args.y, "x", args.x));
  if (args.alpha > 1.0f) return {};
  return op_error("entmax", "alpha is ", args.alpha, ": it must be above 1");
}

Status gradient_rule(Differentiator& d, const EntmaxArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  LOOM_TRY(d.ops().entmax_dx({a.y, dy, x.out, a.scale, a.alpha}));
  return d.accumulate(x);
}

Status check(const EntmaxDxArgs& args) {
  const auto& [y, dy, dx, scale, alpha] = args;
  LOOM_TRY(plain("entmax_dx", "y", y));
  LOOM_TRY(plain("entmax_dx", "dy", dy, y.dtype));
  LOOM_TRY(same_shape("entmax_dx", "y", y, "dy", dy));
  LOOM_TRY(like("entmax_dx", "dx", dx, "y", y));
  LOOM_TRY(in_place_or_apart("entmax_dx", "dx", dx, "dy", dy));
  if (alpha > 1.0f) return {};
  return op_error("entmax_dx", "alpha is ", alpha, ": it must be above 1");
}

Status check(const ReduceArgs& args) {
  LOOM_TRY(plain("reduce", "x", args.x));
  LOOM_TRY(rules::vector("reduce", "y", args.y, args.x.rows(), args.x.dtype));
  return apart("reduce", "y", args.y, "x", args.x);
}

// Each value of a row gets the row's gradient, times a factor of the kind.
Status gradient_rule(Differentiator& d, const ReduceArgs& a) {
  Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  if (a.kind == ReduceKind::max) {
    return make_error(Code::unsupported, "the largest value of a row has no gradient rule");
  }
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  dy.shape = Shape{a.x.rows(), 1};  // one value per row
  dy.row_stride = 1;
  if (a.kind == ReduceKind::sum_squares) {
    LOOM_ASSIGN(const Tensor half, product(d, a.x, dy, BinaryKind::mul));
    LOOM_TRY(d.ops().binary({half, half, x.out, BinaryKind::add}));
  } else {
    const Tensor ones = d.fresh(x.out.shape);
    LOOM_TRY(d.ops().fill({ones, 1.0f}));
    const Tensor sums = a.kind == ReduceKind::mean ? d.fresh(x.out.shape) : x.out;
    LOOM_TRY(d.ops().binary({ones, dy, sums, BinaryKind::mul}));
    if (a.kind == ReduceKind::mean) {
      const Tensor count = d.fresh(Shape{1, 1});
      LOOM_TRY(d.ops().fill({count, static_cast<float>(a.x.cols())}));
      LOOM_TRY(d.ops().binary({sums, count, x.out, BinaryKind::div}));
    }
  }
  return d.accumulate(x);
}

Status check(const ReduceColsArgs& args) {
  LOOM_TRY(plain("reduce_cols", "x", args.x));
  LOOM_TRY(rules::vector("reduce_cols", "y", args.y, args.x.cols(), args.x.dtype));
  return apart("reduce_cols", "y", args.y, "x", args.x);
}

// Each value of a column gets the column's gradient.
Status gradient_rule(Differentiator& d, const ReduceColsArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  const Tensor zeros = d.fresh(x.out.shape);
  LOOM_TRY(d.ops().fill({zeros, 0.0f}));
  LOOM_TRY(d.ops().binary({zeros, dy, x.out, BinaryKind::add}));
  return d.accumulate(x);
}

Status check(const ArgmaxArgs& args) {
  LOOM_TRY(plain("argmax", "x", args.x));
  LOOM_TRY(rules::vector("argmax", "ids", args.ids, args.x.rows(), DType::i32));
  if (args.x.cols() == 0) return op_error("argmax", "x ", args.x.shape.str(), " has empty rows");
  return apart("argmax", "ids", args.ids, "x", args.x);
}

Status check(const TopkArgs& args) {
  const auto& [x, values, ids] = args;
  LOOM_TRY(plain("topk", "x", x));
  LOOM_TRY(plain("topk", "values", values, x.dtype));
  LOOM_TRY(plain("topk", "ids", ids, DType::i32));
  LOOM_TRY(same_shape("topk", "values", values, "ids", ids));
  if (values.rows() != x.rows() || values.cols() > x.cols()) {
    return disagree("topk", "x", x, "values", values,
                    "as many rows, and not more values than a row of x has");
  }
  LOOM_TRY(apart("topk", "values", values, "x", x));
  LOOM_TRY(apart("topk", "ids", ids, "x", x));
  return apart("topk", "ids", ids, "values", values);
}

Status check(const SampleArgs& args) {
  const auto& [values, ids, next, temperature, top_p, min_p, seed, index] = args;
  LOOM_TRY(plain("sample", "values", values, DType::f32));
  LOOM_TRY(plain("sample", "ids", ids, DType::i32));
  LOOM_TRY(same_shape("sample", "values", values, "ids", ids));
  LOOM_TRY(rules::vector("sample", "next", next, values.rows(), DType::i32));
  if (values.cols() < 1 || values.cols() > SampleArgs::kMax) {
    return op_error("sample", "values ", values.shape.str(), " has ", values.cols(),
                    " candidates in a row: it must have 1 to ", SampleArgs::kMax);
  }
  constexpr float kMin = std::numeric_limits<float>::min();
  constexpr float kMax = std::numeric_limits<float>::max();
  if (!(temperature >= kMin && temperature <= kMax)) {
    return op_error("sample", "temperature is ", temperature, ": it must be at least ", kMin,
                    " and finite");
  }
  if (!(top_p > 0.0f && top_p <= 1.0f))
    return op_error("sample", "top_p is ", top_p, ": it must be in (0, 1]");
  if (!(min_p >= 0.0f && min_p <= 1.0f))
    return op_error("sample", "min_p is ", min_p, ": it must be in [0, 1]");
  LOOM_TRY(apart("sample", "next", next, "values", values));
  return apart("sample", "next", next, "ids", ids);
}

}  // namespace loom::core
