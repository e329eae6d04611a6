// The gradient rules of ops that are most of a layer: norms, convolutions, attention, recurrent
// cells, distances.
#include "ops/gradient_rules.hpp"
#include "ops/gradient_support.hpp"

namespace loom::core {

using Place = Differentiator::Place;

namespace {

// The same memory as a matrix of other extents; t has no gaps.
Tensor as_matrix(Tensor t, int64_t rows, int64_t cols) {
  t.shape = Shape{rows, cols};
  t.row_stride = cols;
  return t;
}

// Column sums of t, cut into segments when the parameter is as wide as one, into the gradient of
// the parameter.
Status give_columns(Differentiator& d, const Tensor& parameter, const Tensor& t) {
  LOOM_ASSIGN(const Place p, d.place(parameter, true));
  if (p.out.empty()) return {};
  const int64_t width = parameter.shape.count();
  return d.ops().reduce_cols({as_matrix(t, t.shape.count() / width, width), p.out, p.accumulate});
}

// Sums over the positions of each channel and over samples: the gradient of a bias per channel.
Status give_channels(Differentiator& d, const Tensor& bias, const Tensor& dz, int64_t positions) {
  LOOM_ASSIGN(const Place p, d.place(bias, true));
  if (p.out.empty()) return {};
  const int64_t channels = bias.shape.count(), samples = dz.rows();
  const Tensor sums = d.fresh(Shape{samples, channels});
  LOOM_TRY(d.ops().reduce({as_matrix(dz, samples * channels, positions),
                           as_matrix(sums, 1, samples * channels), ReduceKind::sum}));
  return d.ops().reduce_cols({sums, p.out, p.accumulate});
}

}  // namespace

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
  LOOM_ASSIGN(const Place x, d.place(a.x));
  n.dx = x.out.empty() ? d.fresh(a.x.shape) : x.out;
  if (d.wants(a.gamma)) n.scaled = d.fresh(a.x.shape);
  LOOM_TRY(d.ops().norm_dx(n));
  LOOM_TRY(d.settle(x));
  if (!n.scaled.empty()) LOOM_TRY(give_columns(d, a.gamma, n.scaled));
  return d.wants(a.beta) ? give_columns(d, a.beta, dy) : Status{};
}

Status gradient_rule(Differentiator& d, const ConvArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Tensor dz, before_activation(d, a.activation, a.y, dy));
  LOOM_ASSIGN(const Place x, d.place(a.x, true));
  if (!x.out.empty()) {
    ConvDxArgs c;
    c.dy = dz;
    c.w = a.w;
    c.dx = x.out;
    c.shape = a.shape;
    c.accumulate = x.accumulate;
    LOOM_TRY(d.ops().conv_dx(c));
  }
  LOOM_ASSIGN(const Place w, d.place(a.w, true));
  if (!w.out.empty()) LOOM_TRY(d.ops().conv_dw({a.x, dz, w.out, a.shape, w.accumulate}));
  return give_channels(d, a.bias, dz, a.shape.out_positions());
}

// ConvTransposed: its input is dy of the convolution whose gradient it computes.
Status gradient_rule(Differentiator& d, const ConvDxArgs& a) {
  const Tensor dy = d.of(a.dx);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Tensor dz, before_activation(d, a.activation, a.dx, dy));
  LOOM_ASSIGN(const Place x, d.place(a.dy));
  if (!x.out.empty()) {
    ConvArgs c;
    c.x = dz;
    c.w = a.w;
    c.y = x.out;
    c.shape = a.shape;
    LOOM_TRY(d.ops().conv(c));
    LOOM_TRY(d.settle(x));
  }
  LOOM_ASSIGN(const Place w, d.place(a.w, true));
  if (!w.out.empty()) LOOM_TRY(d.ops().conv_dw({dz, a.dy, w.out, a.shape, w.accumulate}));
  return give_channels(d, a.bias, dz, a.shape.in_positions());
}

Status gradient_rule(Differentiator& d, const AttendArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty()) return {};
  LOOM_ASSIGN(const Place q, d.place(a.q));
  LOOM_ASSIGN(const Place k, d.place(a.k));
  LOOM_ASSIGN(const Place v, d.place(a.v));
  if (q.out.empty() && k.out.empty() && v.out.empty()) return {};
  AttendDxArgs g;
  g.q = a.q;
  g.k = a.k;
  g.v = a.v;
  g.dy = dy;
  g.mask = a.mask;
  g.dq = q.out.empty() ? d.fresh(a.q.shape) : q.out;
  g.dk = k.out.empty() ? d.fresh(a.k.shape) : k.out;
  g.dv = v.out.empty() ? d.fresh(a.v.shape) : v.out;
  g.sequences = a.sequences;
  g.heads = a.heads;
  g.kv_heads = a.kv_heads;
  g.window = a.window;
  g.scale = a.scale;
  g.causal = a.causal;
  g.soft_cap = a.soft_cap;
  LOOM_TRY(d.ops().attend_dx(g));
  LOOM_TRY(d.settle(q));
  LOOM_TRY(d.settle(k));
  return d.settle(v);
}

Status gradient_rule(Differentiator& d, const LstmCellArgs& a) {
  LstmCellDxArgs g;
  g.dh = d.of(a.h);
  g.dc_next = d.of(a.c);
  if (g.dh.empty() && g.dc_next.empty()) return {};
  LOOM_ASSIGN(const Place gates, d.place(a.gates));
  LOOM_ASSIGN(const Place before, d.place(a.c_before));
  g.acts = a.acts;
  g.c_before = a.c_before;
  g.c = a.c;
  g.dgates = gates.out.empty() ? d.fresh(a.gates.shape) : gates.out;
  g.dc_before = before.out;
  if (g.dc_before.empty()) g.dc_before = d.fresh(Shape{a.c.rows(), a.c.cols()});
  LOOM_TRY(d.ops().lstm_cell_dx(g));
  LOOM_TRY(d.settle(gates));
  return d.settle(before);
}

Status gradient_rule(Differentiator& d, const GruCellArgs& a) {
  GruCellDxArgs g;
  g.dh = d.of(a.h);
  if (g.dh.empty()) return {};
  LOOM_ASSIGN(const Place gx, d.place(a.gx));
  LOOM_ASSIGN(const Place gh, d.place(a.gh));
  LOOM_ASSIGN(const Place before, d.place(a.h_before));
  const auto or_fresh = [&](const Place& p, const Tensor& like) {
    return p.out.empty() ? d.fresh(Shape{like.rows(), like.cols()}) : p.out;
  };
  g.acts = a.acts;
  g.gh = a.gh;
  g.h_before = a.h_before;
  g.dgx = or_fresh(gx, a.gx);
  g.dgh = or_fresh(gh, a.gh);
  g.dh_before = or_fresh(before, a.h);
  LOOM_TRY(d.ops().gru_cell_dx(g));
  LOOM_TRY(d.settle(gx));
  LOOM_TRY(d.settle(gh));
  return d.settle(before);
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
  LOOM_ASSIGN(const Place x, d.place(a.x));
  if (!x.out.empty()) {
    const Tensor sums = d.fresh(Shape{rows, 1}), mixed = d.fresh(Shape{rows, width});
    LOOM_TRY(d.ops().reduce({dy, sums, ReduceKind::sum}));
    LOOM_TRY(d.ops().matmul_dx({dy, a.c, mixed}));
    LOOM_TRY(twice_difference(a.x, sums, mixed, x.out));
    LOOM_TRY(d.settle(x));
  }
  LOOM_ASSIGN(const Place c, d.place(a.c));
  if (c.out.empty()) return {};
  const Tensor sums = d.fresh(Shape{centres}), mixed = d.fresh(Shape{centres, width});
  const Tensor plain = d.fresh(Shape{centres, width});
  LOOM_TRY(d.ops().reduce_cols({dy, sums}));
  LOOM_TRY(d.ops().convert({a.c, plain}));
  LOOM_TRY(d.ops().gemm({dy, a.x, mixed, true, false}));
  LOOM_TRY(twice_difference(plain, as_matrix(sums, centres, 1), mixed, c.out));
  return d.settle(c);
}

}  // namespace loom::core
