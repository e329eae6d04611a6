// Checks and gradient rules of value-wise ops. products.cpp describes the layout of a check.
#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/activation_dx.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart;
using rules::disagree;
using rules::in_place_or_apart;
using rules::like;
using rules::Named;
using rules::op_error;
using rules::plain;
using rules::rows_in_rows_out;
using rules::same_shape;

// Adds `full`, a gradient of the shape of a, to the gradient of b, which may be broadcast.
Status give_broadcast(Differentiator& d, const Tensor& b, const Tensor& full) {
  if (b.rows() == full.rows() && b.cols() == full.cols()) {
    LOOM_ASSIGN(const Target p, d.gradient_target(b));
    if (p.out.empty()) return {};
    LOOM_TRY(d.ops().unary({full, p.out}));
    return d.accumulate(p);
  }
  if (b.rows() == 1 && b.cols() == full.cols()) {
    LOOM_ASSIGN(const Target p, d.gradient_target(b, true));
    return p.out.empty() ? Status{} : d.ops().reduce_cols({full, p.out, p.accumulate});
  }
  LOOM_ASSIGN(const Target p, d.gradient_target(b));
  if (p.out.empty()) return {};
  Tensor sums = d.fresh(Shape{b.rows(), 1});
  if (b.rows() == full.rows()) {
    LOOM_TRY(d.ops().reduce({full, sums, ReduceKind::sum}));
  } else {  // one value for all
    const Tensor columns = d.fresh(Shape{1, full.cols()});
    LOOM_TRY(d.ops().reduce_cols({full, columns}));
    LOOM_TRY(d.ops().reduce({columns, sums, ReduceKind::sum}));
  }
  LOOM_TRY(d.ops().unary({sums, p.out}));  // p.out may be a column of something wider
  return d.accumulate(p);
}

Result<Tensor> negated(Differentiator& d, const Tensor& x) {
  const Tensor out = d.fresh(x.shape);
  LOOM_TRY(d.ops().unary({x, out, UnaryKind::neg}));
  return out;
}

// 1 if max (or min) selected a, else 0: step(a - b), or step(b - a).
Result<Tensor> taken(Differentiator& d, const BinaryArgs& op) {
  LOOM_ASSIGN(Tensor difference, product(d, op.a, op.b, BinaryKind::sub));
  if (op.kind == BinaryKind::min) {
    LOOM_ASSIGN(difference, negated(d, difference));
  }
  const Tensor step = d.fresh(op.a.shape);
  LOOM_TRY(d.ops().unary({difference, step, UnaryKind::step}));
  return step;
}

// dL/da = dy * (dy/da), of the shape of y.
Result<Tensor> binary_da(Differentiator& d, const BinaryArgs& op, const Tensor& dy) {
  switch (op.kind) {
    case BinaryKind::add:
    case BinaryKind::sub: return dy;
    case BinaryKind::mul:
    case BinaryKind::div: return product(d, dy, op.b, op.kind);
    default: {
      LOOM_ASSIGN(const Tensor mine, taken(d, op));
      return product(d, dy, mine, BinaryKind::mul);
    }
  }
}

Result<Tensor> binary_db(Differentiator& d, const BinaryArgs& op, const Tensor& dy) {
  switch (op.kind) {
    case BinaryKind::add: return dy;
    case BinaryKind::sub: return negated(d, dy);
    case BinaryKind::mul: return product(d, dy, op.a, BinaryKind::mul);
    case BinaryKind::div: {  // -dy y / b
      LOOM_ASSIGN(const Tensor up, product(d, dy, op.y, BinaryKind::mul));
      LOOM_ASSIGN(const Tensor all, product(d, up, op.b, BinaryKind::div));
      return negated(d, all);
    }
    default: {
      LOOM_ASSIGN(const Tensor theirs, taken(d, op));
      LOOM_ASSIGN(const Tensor kept, product(d, dy, theirs, BinaryKind::mul));
      return product(d, dy, kept, BinaryKind::sub);
    }
  }
}

}  // namespace

Status check(const UnaryArgs& args) {
  return rows_in_rows_out("unary", args.x, args.y);
}

Status gradient_rule(Differentiator& d, const UnaryArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty() || a.kind == UnaryKind::step) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  const bool activation = a.kind <= UnaryKind::hard_swish;
  if (a.kind == UnaryKind::linear || (activation && !d.has_slopes())) {
    LOOM_TRY(d.ops().unary({dy, x.out}));
  } else if (result_tells(a.kind)) {
    LOOM_TRY(d.ops().unary_dx({a.y, dy, x.out, a.kind, true}));
  } else {
    LOOM_TRY(d.ops().unary_dx({a.x, dy, x.out, a.kind, false}));
  }
  return d.accumulate(x);
}

Status check(const BinaryArgs& args) {
  const auto& [a, b, y, kind] = args;
  LOOM_TRY(plain("binary", "a", a));
  LOOM_TRY(plain("binary", "b", b, a.dtype));
  LOOM_TRY(like("binary", "y", y, "a", a));
  const bool row = b.rows() == 1 && b.cols() == a.cols();
  const bool column = b.rows() == a.rows() && b.cols() == 1;
  const bool same = b.rows() == a.rows() && b.cols() == a.cols();
  const bool single = b.rows() == 1 && b.cols() == 1;
  if (!same && !row && !column && !single) {
    return disagree("binary", "a", a, "b", b,
                    "b must have a's shape, be one row or column of it, or one value");
  }
  return in_place_or_apart("binary", "y", y, "b", b);
}

Status gradient_rule(Differentiator& d, const BinaryArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  if (d.wants(a.a)) {
    LOOM_ASSIGN(const Tensor da, binary_da(d, a, dy));
    LOOM_TRY(give_broadcast(d, a.a, da));
  }
  if (d.wants(a.b)) {
    LOOM_ASSIGN(const Tensor db, binary_db(d, a, dy));
    LOOM_TRY(give_broadcast(d, a.b, db));
  }
  return {};
}

Status check(const GatedArgs& args) {
  const auto& [gate, up, y, activation] = args;
  LOOM_TRY(plain("gated", "gate", gate));
  LOOM_TRY(plain("gated", "up", up, gate.dtype));
  LOOM_TRY(same_shape("gated", "gate", gate, "up", up));
  LOOM_TRY(like("gated", "y", y, "gate", gate));
  return in_place_or_apart("gated", "y", y, "up", up);
}

Status gradient_rule(Differentiator& d, const GatedArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(Target gate, d.gradient_target(a.gate));
  LOOM_ASSIGN(Target up, d.gradient_target(a.up));
  if (gate.out.empty() && up.out.empty()) return {};
  if (gate.out.empty()) gate.out = d.fresh(a.gate.shape);
  if (up.out.empty()) up.out = d.fresh(a.up.shape);
  LOOM_TRY(d.ops().gated_dx({a.gate, a.up, dy, gate.out, up.out, a.activation}));
  LOOM_TRY(d.accumulate(gate));
  return d.accumulate(up);
}

Status check(const FillArgs& args) {
  return plain("fill", "y", args.y);
}

Status check(const RandomArgs& args) {
  LOOM_TRY(plain("random", "y", args.y));
  if (args.step.empty()) return {};
  LOOM_TRY(rules::vector("random", "step", args.step, 1, args.y.dtype));
  return apart("random", "y", args.y, "step", args.step);
}

Status check(const UnaryDxArgs& args) {
  const auto& [x, dy, dx, kind, from_output] = args;
  LOOM_TRY(plain("unary_dx", "x", x));
  LOOM_TRY(plain("unary_dx", "dy", dy, x.dtype));
  LOOM_TRY(same_shape("unary_dx", "x", x, "dy", dy));
  LOOM_TRY(like("unary_dx", "dx", dx, "x", x));
  if (from_output && !has_dx_from_output(kind)) {
    return op_error("unary_dx", "kind ", static_cast<int>(kind),
                    " has no derivative from its output: x must hold the input");
  }
  return in_place_or_apart("unary_dx", "dx", dx, "dy", dy);
}

Status check(const GatedDxArgs& args) {
  const auto& [gate, up, dy, dgate, dup, activation] = args;
  LOOM_TRY(plain("gated_dx", "gate", gate));
  for (const Named& in : {Named{"up", up}, Named{"dy", dy}}) {
    LOOM_TRY(plain("gated_dx", in.name, in.t, gate.dtype));
    LOOM_TRY(same_shape("gated_dx", "gate", gate, in.name, in.t));
  }
  for (const Named& out : {Named{"dgate", dgate}, Named{"dup", dup}}) {
    LOOM_TRY(like("gated_dx", out.name, out.t, "gate", gate));
    LOOM_TRY(in_place_or_apart("gated_dx", out.name, out.t, "up", up));
    LOOM_TRY(in_place_or_apart("gated_dx", out.name, out.t, "dy", dy));
  }
  return apart("gated_dx", "dgate", dgate, "dup", dup);
}

}  // namespace loom::core
