// The gradient rules of products, elementwise ops and reductions. Rules of fused layers are in
// gradient_rules_layers.cpp.
#include "ops/gradient_rules.hpp"

#include "ops/gradient_support.hpp"

namespace loom::core {

using Place = Differentiator::Place;

#define LOOM_NO_GRADIENT(Args)                         \
  Status gradient_rule(Differentiator&, const Args&) { \
    return {};                                         \
  }
LOOM_NO_GRADIENT(QuantiseRowsArgs)
LOOM_NO_GRADIENT(PackArgs)
LOOM_NO_GRADIENT(DistinctRowsArgs)
LOOM_NO_GRADIENT(KvWriteArgs)
LOOM_NO_GRADIENT(AttentionArgs)
LOOM_NO_GRADIENT(ArgmaxArgs)
LOOM_NO_GRADIENT(TopkArgs)
LOOM_NO_GRADIENT(DrawArgs)
LOOM_NO_GRADIENT(ConvertArgs)
LOOM_NO_GRADIENT(FillArgs)
LOOM_NO_GRADIENT(RandomArgs)
LOOM_NO_GRADIENT(LossArgs)
LOOM_NO_GRADIENT(OptimiseArgs)
LOOM_NO_GRADIENT(ScatterAddRowsArgs)
LOOM_NO_GRADIENT(UnaryDxArgs)
LOOM_NO_GRADIENT(GatedDxArgs)
LOOM_NO_GRADIENT(NormDxArgs)
LOOM_NO_GRADIENT(SoftmaxDxArgs)
LOOM_NO_GRADIENT(EntmaxDxArgs)
LOOM_NO_GRADIENT(ConvDwArgs)
LOOM_NO_GRADIENT(AttendDxArgs)
LOOM_NO_GRADIENT(LstmCellDxArgs)
LOOM_NO_GRADIENT(GruCellDxArgs)
#undef LOOM_NO_GRADIENT

// y = act(x w^T + bias): with dz = dy act', dx = dz w, dw = dz^T x, dbias = column sums of dz.
Status gradient_rule(Differentiator& d, const MatmulArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Tensor dz, before_activation(d, a.activation, a.y, dy));
  LOOM_ASSIGN(const Place x, d.place(a.x, true));
  if (!x.out.empty()) LOOM_TRY(d.ops().matmul_dx({dz, a.w, x.out, x.accumulate}));
  LOOM_ASSIGN(const Place w, d.place(a.w, true));
  if (!w.out.empty()) LOOM_TRY(d.ops().gemm({dz, a.x, w.out, true, false, w.accumulate}));
  LOOM_ASSIGN(const Place b, d.place(a.bias, true));
  if (!b.out.empty()) LOOM_TRY(d.ops().reduce_cols({dz, b.out, b.accumulate}));
  return {};
}

// As a forward op: y = a w, so da = dy w^T and dw = a^T dy.
Status gradient_rule(Differentiator& d, const MatmulDxArgs& a) {
  const Tensor dy = d.of(a.dx);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Place x, d.place(a.dy));
  if (!x.out.empty()) {
    LOOM_TRY(d.ops().matmul({dy, a.w, {}, x.out}));
    LOOM_TRY(d.settle(x));
  }
  LOOM_ASSIGN(const Place w, d.place(a.w, true));
  return w.out.empty() ? Status{} : d.ops().gemm({a.dy, dy, w.out, true, false, w.accumulate});
}

namespace {

// Rows of a gradient are those of dy, added up where their id stands first.
Status gather_sparse(Differentiator& d, const GatherRowsArgs& a, const Tensor& dy) {
  const Shape places{a.ids.shape.count()};
  const Tensor rows = d.fresh(places, DType::i32), first = d.fresh(places, DType::i32);
  LOOM_ASSIGN(const Tensor sums, d.place_rows(a.table, rows));
  if (sums.empty()) return {};
  const Tensor seen = d.fresh(Shape{a.table.rows()}, DType::i32);
  LOOM_TRY(d.ops().distinct_rows({a.ids, seen, rows, first, a.skip}));
  LOOM_TRY(d.ops().fill({sums, 0.0f}));
  return d.ops().scatter_add_rows({dy, first, sums, -1});
}

}  // namespace

Status gradient_rule(Differentiator& d, const GatherRowsArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  if (a.sparse) return gather_sparse(d, a, dy);
  LOOM_ASSIGN(const Place table, d.place(a.table, true));
  if (table.out.empty()) return {};
  if (!table.accumulate) LOOM_TRY(d.ops().fill({table.out, 0.0f}));
  return d.ops().scatter_add_rows({dy, a.ids, table.out, a.skip});
}

// C = A B: dA = dC B^T, dB = A^T dC, each transposed where its operand is.
Status gradient_rule(Differentiator& d, const GemmArgs& g) {
  const Tensor dy = d.of(g.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Place a, d.place(g.a, true));
  if (!a.out.empty()) {
    GemmArgs da{dy, g.b, a.out, false, !g.b_transposed, a.accumulate};
    if (g.a_transposed) da = {g.b, dy, a.out, g.b_transposed, true, a.accumulate};
    LOOM_TRY(d.ops().gemm(da));
  }
  LOOM_ASSIGN(const Place b, d.place(g.b, true));
  if (b.out.empty()) return {};
  GemmArgs db{g.a, dy, b.out, !g.a_transposed, false, b.accumulate};
  if (g.b_transposed) db = {dy, g.a, b.out, true, g.a_transposed, b.accumulate};
  return d.ops().gemm(db);
}

Status gradient_rule(Differentiator& d, const RopeArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Place x, d.place(a.x));
  if (x.out.empty()) return {};
  RopeArgs back = a;
  back.x = dy;
  back.y = x.out;
  back.inverse = !a.inverse;
  LOOM_TRY(d.ops().rope(back));
  return d.settle(x);
}

Status gradient_rule(Differentiator& d, const UnaryArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty() || a.kind == UnaryKind::step) return {};
  LOOM_ASSIGN(const Place x, d.place(a.x));
  if (x.out.empty()) return {};
  if (a.kind == UnaryKind::linear) {
    LOOM_TRY(d.ops().unary({dy, x.out}));
  } else if (result_tells(a.kind)) {
    LOOM_TRY(d.ops().unary_dx({a.y, dy, x.out, a.kind, true}));
  } else {
    LOOM_TRY(d.ops().unary_dx({a.x, dy, x.out, a.kind, false}));
  }
  return d.settle(x);
}

namespace {

// Adds `full`, a gradient of the shape of a, to the gradient of b, which may have been broadcast.
Status give_broadcast(Differentiator& d, const Tensor& b, const Tensor& full) {
  if (b.rows() == full.rows() && b.cols() == full.cols()) {
    LOOM_ASSIGN(const Place p, d.place(b));
    if (p.out.empty()) return {};
    LOOM_TRY(d.ops().unary({full, p.out}));
    return d.settle(p);
  }
  if (b.rows() == 1 && b.cols() == full.cols()) {
    LOOM_ASSIGN(const Place p, d.place(b, true));
    return p.out.empty() ? Status{} : d.ops().reduce_cols({full, p.out, p.accumulate});
  }
  LOOM_ASSIGN(const Place p, d.place(b));
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
  return d.settle(p);
}

// x * f, x of the shape of y, into a fresh tensor.
Result<Tensor> product(Differentiator& d, const Tensor& x, const Tensor& f, BinaryKind kind) {
  const Tensor out = d.fresh(x.shape);
  LOOM_TRY(d.ops().binary({x, f, out, kind}));
  return out;
}

Result<Tensor> negated(Differentiator& d, const Tensor& x) {
  const Tensor out = d.fresh(x.shape);
  LOOM_TRY(d.ops().unary({x, out, UnaryKind::neg}));
  return out;
}

// 1 where a is the one that max (or min) took, else 0: step(a - b), or step(b - a).
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

Status gradient_rule(Differentiator& d, const GatedArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(Place gate, d.place(a.gate));
  LOOM_ASSIGN(Place up, d.place(a.up));
  if (gate.out.empty() && up.out.empty()) return {};
  if (gate.out.empty()) gate.out = d.fresh(a.gate.shape);
  if (up.out.empty()) up.out = d.fresh(a.up.shape);
  LOOM_TRY(d.ops().gated_dx({a.gate, a.up, dy, gate.out, up.out, a.activation}));
  LOOM_TRY(d.settle(gate));
  return d.settle(up);
}

Status gradient_rule(Differentiator& d, const SoftmaxArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Place x, d.place(a.x));
  if (x.out.empty()) return {};
  LOOM_TRY(d.ops().softmax_dx({a.y, dy, x.out, a.scale}));
  return d.settle(x);
}

Status gradient_rule(Differentiator& d, const EntmaxArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Place x, d.place(a.x));
  if (x.out.empty()) return {};
  LOOM_TRY(d.ops().entmax_dx({a.y, dy, x.out, a.scale, a.alpha}));
  return d.settle(x);
}

// Each value of a column gets the column's gradient.
Status gradient_rule(Differentiator& d, const ReduceColsArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Place x, d.place(a.x));
  if (x.out.empty()) return {};
  const Tensor zeros = d.fresh(x.out.shape);
  LOOM_TRY(d.ops().fill({zeros, 0.0f}));
  LOOM_TRY(d.ops().binary({zeros, dy, x.out, BinaryKind::add}));
  return d.settle(x);
}

// Each value of a row gets the row's gradient, times what the kind says.
Status gradient_rule(Differentiator& d, const ReduceArgs& a) {
  Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  if (a.kind == ReduceKind::max) {
    return make_error(Code::unsupported, "the largest value of a row has no gradient rule");
  }
  LOOM_ASSIGN(const Place x, d.place(a.x));
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
  return d.settle(x);
}

}  // namespace loom::core
