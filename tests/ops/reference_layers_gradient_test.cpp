// Convolution, self-attention and recurrent cells: forward passes against naive formulas, gradients
// against central differences of the f64 reference.
#include "ops/args.hpp"
#include "ops/f64.hpp"
#include "ops/ops.hpp"

namespace loom::core {
namespace {

using test::dot;
using test::expect_close;
using test::expect_gradient;
using test::F64;
using test::run64;
using test::Weights64;

// ---- convolution ----

struct Axis {
  int64_t in = 1, kernel = 1, stride = 1, pad = 0, dilation = 1;
};

ConvShape conv_shape(int64_t channels, int64_t filters, int64_t groups,
                     const std::vector<Axis>& axes) {
  ConvShape s;
  s.channels = channels, s.filters = filters, s.groups = groups;
  for (size_t a = 0; a < axes.size(); ++a) {
    const Axis& axis = axes[a];
    s.in[a] = axis.in, s.kernel[a] = axis.kernel, s.stride[a] = axis.stride;
    s.pad[a] = axis.pad, s.dilation[a] = axis.dilation;
    s.out[a] = (axis.in + 2 * axis.pad - axis.dilation * (axis.kernel - 1) - 1) / axis.stride + 1;
  }
  return s;
}

std::vector<ConvShape> conv_shapes() {
  return {conv_shape(3, 4, 1, {{7, 3}}),
          conv_shape(4, 6, 2, {{9, 3, 2, 2, 2}}),
          conv_shape(2, 3, 1, {{5, 3, 1, 1}, {6, 3, 2, 1}}),
          conv_shape(3, 3, 3, {{5, 3, 2, 1}, {4, 2}}),
          conv_shape(4, 2, 2, {{6, 2, 1, 1, 2}, {5, 3, 3, 2}}),
          conv_shape(2, 2, 1, {{3, 2}, {4, 3, 2, 1}, {5, 2, 1, 0, 2}}),
          conv_shape(5, 3, 1, {{2, 1, 2}, {3, 1}})};
}

// One output by the definition, written over coordinates.
double naive_conv(const ConvShape& s, const F64& x, const F64& w, int64_t b, int64_t f,
                  const int64_t (&o)[3]) {
  const int64_t channels = s.channels / s.groups, group = f / (s.filters / s.groups);
  double sum = 0;
  int64_t k[3];
  for (int64_t c = 0; c < channels; ++c) {
    int64_t tap = 0;
    for (k[0] = 0; k[0] < s.kernel[0]; ++k[0]) {
      for (k[1] = 0; k[1] < s.kernel[1]; ++k[1]) {
        for (k[2] = 0; k[2] < s.kernel[2]; ++k[2], ++tap) {
          int64_t at = group * channels + c;
          bool inside = true;
          for (int a = 0; a < 3; ++a) {
            const int64_t i = o[a] * s.stride[a] + k[a] * s.dilation[a] - s.pad[a];
            inside = inside && i >= 0 && i < s.in[a];
            at = at * s.in[a] + i;
          }
          if (inside) sum += x.at(b, at) * w.at(f, c * s.taps() + tap);
        }
      }
    }
  }
  return sum;
}

TEST(Conv, IsTheNaiveSum) {
  for (const ConvShape& s : conv_shapes()) {
    const F64 x = F64::random(2, s.channels * s.in_positions(), 1, 3);
    const Weights64 w(DType::f32, s.filters, s.patch(), 2);
    const F64 bias = F64::random(1, s.filters, 3), y(2, s.filters * s.out_positions());
    run64(&Ops::conv,
          ConvArgs{x.tensor(), w.tensor(), bias.vector(), y.tensor(), s, Activation::leaky_relu});
    for (int64_t b = 0; b < 2; ++b) {
      int64_t o[3], at = 0;
      for (int64_t f = 0; f < s.filters; ++f) {
        for (o[0] = 0; o[0] < s.out[0]; ++o[0]) {
          for (o[1] = 0; o[1] < s.out[1]; ++o[1]) {
            for (o[2] = 0; o[2] < s.out[2]; ++o[2]) {
              const double sum = naive_conv(s, x, w.values(), b, f, o) + bias[f];
              expect_close("conv", y.at(b, at++), sum < 0 ? 0.01 * sum : sum);
            }
          }
        }
      }
    }
  }
}

TEST(ConvDx, IsTheGradientOfConv) {
  for (const ConvShape& s : conv_shapes()) {
    const F64 x = F64::random(2, s.channels * s.in_positions(), 4, 1), dx(2, x.cols(), 2);
    const Weights64 w(DType::bf16, s.filters, s.patch(), 5);
    const F64 y(2, s.filters * s.out_positions()), dy = F64::random(2, y.cols(), 6);
    run64(&Ops::conv_dx, ConvDxArgs{dy.tensor(), w.tensor(), {}, dx.tensor(), s});
    expect_gradient("conv_dx", x, dx, [&] {
      run64(&Ops::conv, ConvArgs{x.tensor(), w.tensor(), {}, y.tensor(), s});
      return dot(y, dy);
    });
    const F64 added = F64::random(2, x.cols(), 7), old = F64::random(2, x.cols(), 7);
    ConvDxArgs accumulate{dy.tensor(), w.tensor(), {}, added.tensor(), s};
    accumulate.accumulate = true;
    run64(&Ops::conv_dx, accumulate);
    for (int64_t i = 0; i < dx.size(); ++i) EXPECT_EQ(added[i], old[i] + dx[i]);
  }
}

TEST(ConvDx, WithBiasAndActivationIsATransposedConvolution) {
  const ConvShape s = conv_shape(4, 6, 2, {{9, 3, 2, 2, 2}});
  const Weights64 w(DType::f32, s.filters, s.patch(), 8);
  const F64 dy = F64::random(2, s.filters * s.out_positions(), 9);
  const F64 bias = F64::random(1, s.channels, 10), plain(2, s.channels * s.in_positions()),
            full(2, plain.cols());
  run64(&Ops::conv_dx, ConvDxArgs{dy.tensor(), w.tensor(), {}, plain.tensor(), s});
  run64(&Ops::conv_dx,
        ConvDxArgs{dy.tensor(), w.tensor(), bias.vector(), full.tensor(), s, Activation::relu});
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t i = 0; i < plain.cols(); ++i) {
      EXPECT_EQ(full.at(b, i), std::max(0.0, plain.at(b, i) + bias[i / s.in_positions()]));
    }
  }
}

TEST(ConvDw, IsTheGradientOfConv) {
  for (const ConvShape& s : conv_shapes()) {
    const F64 x = F64::random(2, s.channels * s.in_positions(), 11, 1);
    Weights64 w(DType::f32, s.filters, s.patch(), 12);
    const F64 y(2, s.filters * s.out_positions()), dy = F64::random(2, y.cols(), 13);
    const F64 dw(s.filters, s.patch(), 1);
    run64(&Ops::conv_dw, ConvDwArgs{x.tensor(), dy.tensor(), dw.tensor(), s, false});
    // conv is linear in w, so any step gives the gradient; the step must be exact in f32.
    const auto objective = [&](int64_t i, float value) {
      w.set(i, value);
      run64(&Ops::conv, ConvArgs{x.tensor(), w.tensor(), {}, y.tensor(), s});
      return dot(y, dy);
    };
    for (int64_t i = 0; i < dw.size(); ++i) {
      const double difference = objective(i, 1.0f) - objective(i, -1.0f);
      expect_close("conv_dw", dw[i], difference / 2, 1e-11);
    }
    const F64 added = F64::random(s.filters, s.patch(), 14);
    const F64 old = F64::random(s.filters, s.patch(), 14);
    run64(&Ops::conv_dw, ConvDwArgs{x.tensor(), dy.tensor(), added.tensor(), s, true});
    for (int64_t i = 0; i < dw.size(); ++i) EXPECT_EQ(added[i], old[i] + dw[i]);
  }
}

// ---- self-attention ----

struct Heads {
  int64_t sequences, length, heads, kv_heads, width, window;
  bool causal, masked;
  float soft_cap = 0.0f;
  bool slopes = false, sinks = false;
};
constexpr Heads kHeads[] = {{2, 6, 4, 2, 3, 4, true, true, 0.5f},
                            {1, 5, 2, 1, 4, 0, false, false, 2.0f},
                            {2, 6, 4, 2, 3, 4, true, true, 0.5f, true, true},
                            {1, 5, 4, 2, 3, 0, true, false, 0.0f, false, true},
                            {2, 5, 2, 1, 4, 0, false, true, 0.0f, true, true},
                            {1, 7, 3, 3, 2, 3, false, false, 0.0f, true, false},
                            {1, 5, 1, 1, 4, 0, true, false},
                            {2, 6, 4, 2, 3, 0, true, false},
                            {2, 7, 2, 1, 4, 3, true, false},
                            {2, 5, 2, 2, 3, 0, false, true},
                            {1, 8, 3, 1, 2, 2, false, false},
                            {2, 6, 4, 2, 3, 4, true, true},
                            {1, 1, 2, 1, 3, 1, false, false},
                            {2, 6, 2, 2, 2, 3, false, true}};

struct Attention {
  explicit Attention(const Heads& shape)
      : h(shape),
        rows(h.sequences * h.length),
        q(F64::random(rows, h.heads * h.width, 20, 1)),
        k(F64::random(rows, h.kv_heads * h.width, 21)),
        v(F64::random(rows, h.kv_heads * h.width, 22, 2)),
        mask(h.sequences, h.length),
        sinks(F64::random(1, h.heads, 27)),
        y(rows, h.heads * h.width) {
    for (int64_t i = 0; i < h.heads; ++i) slopes.push_back(0.25f * static_cast<float>(i + 1));
    for (int64_t i = 0; i < mask.size(); ++i) mask[i] = i % 4 == 1 ? 0.0 : 1.0;
  }
  template <class Args>
  void fill(Args& args) const {
    args.q = q.tensor(), args.k = k.tensor(), args.v = v.tensor();
    if (h.masked) args.mask = mask.tensor();
    args.sequences = h.sequences, args.heads = h.heads, args.kv_heads = h.kv_heads;
    args.window = h.window, args.scale = 0.75f, args.causal = h.causal;
    args.soft_cap = h.soft_cap;
    if (h.slopes) args.slopes = f32_vector(const_cast<float*>(slopes.data()), h.heads);
    if (h.sinks) args.sinks = sinks.tensor();
  }
  void forward() const {
    AttendArgs args;
    fill(args);
    args.y = y.tensor();
    run64(&Ops::attend, args);
  }
  bool sees(int64_t sequence, int64_t row, int64_t position) const {
    if (h.masked && mask.at(sequence, position) == 0) return false;
    if (h.causal && position > row) return false;
    return h.window == 0 || std::abs(row - position) < h.window;
  }

  Heads h;
  int64_t rows;
  F64 q, k, v, mask, sinks, y;
  std::vector<float> slopes;
};

// y of one row and head by the definition.
std::vector<double> naive_attention(const Attention& a, int64_t row, int64_t head) {
  const Heads& h = a.h;
  const int64_t first = row / h.length * h.length, kv = head / (h.heads / h.kv_heads) * h.width;
  std::vector<double> y(static_cast<size_t>(h.width));
  double total = 0;
  for (int64_t p = 0; p < h.length; ++p) {
    if (!a.sees(row / h.length, row % h.length, p)) continue;
    double score = 0;
    for (int64_t d = 0; d < h.width; ++d) {
      score += a.q.at(row, head * h.width + d) * a.k.at(first + p, kv + d);
    }
    score *= 0.75;
    const auto cap = static_cast<double>(h.soft_cap);
    if (cap > 0) score = cap * std::tanh(score / cap);
    if (h.slopes) {
      score -= static_cast<double>(a.slopes[static_cast<size_t>(head)]) *
               static_cast<double>(std::abs(row % h.length - p));
    }
    total += std::exp(score);
    for (size_t d = 0; d < y.size(); ++d) {
      y[d] += std::exp(score) * a.v.at(first + p, kv + static_cast<int64_t>(d));
    }
  }
  if (h.sinks) total += std::exp(a.sinks[head]);
  for (double& value : y) value = total > 0 ? value / total : 0;
  return y;
}

TEST(Attend, IsTheNaiveSoftmax) {
  for (const Heads& h : kHeads) {
    const Attention a(h);
    a.forward();
    for (int64_t r = 0; r < a.rows; ++r) {
      for (int64_t head = 0; head < h.heads; ++head) {
        const std::vector<double> expected = naive_attention(a, r, head);
        for (int64_t d = 0; d < h.width; ++d) {
          expect_close("attend", a.y.at(r, head * h.width + d), expected[static_cast<size_t>(d)]);
        }
      }
    }
  }
}

TEST(AttendDx, IsTheGradientOfAttend) {
  for (const Heads& h : kHeads) {
    const Attention a(h);
    const F64 dy = F64::random(a.rows, a.q.cols(), 23, 1);
    const F64 dq(a.rows, a.q.cols()), dk(a.rows, a.k.cols(), 1), dv(a.rows, a.v.cols());
    AttendDxArgs args;
    a.fill(args);
    args.dy = dy.tensor(), args.dq = dq.tensor(), args.dk = dk.tensor(), args.dv = dv.tensor();
    const F64 by_row(a.rows, h.heads), dsinks(1, h.heads);
    if (h.sinks) args.dsinks = by_row.tensor();
    run64(&Ops::attend_dx, args);
    for (int64_t r = 0; r < a.rows; ++r)
      for (int64_t head = 0; head < h.heads; ++head) dsinks[head] += by_row.at(r, head);
    const auto objective = [&] {
      a.forward();
      return dot(a.y, dy);
    };
    expect_gradient("dq", a.q, dq, objective);
    expect_gradient("dk", a.k, dk, objective);
    expect_gradient("dv", a.v, dv, objective);
    if (h.sinks) expect_gradient("dsinks", a.sinks, dsinks, objective);
  }
}

// Masked values may be anything, NaN included; a sequence without any position gives zeros.
TEST(AttendDx, MaskedPositionsAddNothing) {
  const Attention a({2, 4, 2, 1, 3, 0, false, true});
  const F64 dy = F64::random(a.rows, a.q.cols(), 24);
  const F64 dq(a.rows, a.q.cols()), dk(a.rows, a.k.cols()), dv(a.rows, a.v.cols());
  for (int64_t r = 0; r < a.rows; ++r) {
    if (r >= 4) a.mask[r] = 0;
    if (a.mask[r] != 0) continue;
    for (int64_t d = 0; d < 3; ++d) a.k.at(r, d) = a.v.at(r, d) = std::nan("");
  }
  a.forward();
  AttendDxArgs args;
  a.fill(args);
  args.dy = dy.tensor(), args.dq = dq.tensor(), args.dk = dk.tensor(), args.dv = dv.tensor();
  run64(&Ops::attend_dx, args);
  for (const F64* x : {&a.y, &dq, &dk, &dv}) {
    for (int64_t i = 0; i < x->size(); ++i) EXPECT_TRUE(std::isfinite((*x)[i]));
    for (int64_t c = 0; c < x->cols(); ++c) EXPECT_EQ(x->at(6, c), 0.0);
  }
}

// ---- recurrent cells ----

TEST(LstmCellDx, IsTheGradientOfLstmCell) {
  for (bool state : {false, true}) {
    const F64 gates = F64::random(3, 16, 30, 1), before = F64::random(3, 4, 31), c(3, 4), h(3, 4);
    const F64 dh = F64::random(3, 4, 32), dc = F64::random(3, 4, 33), acts(3, 16);
    const F64 dgates(3, 16), dbefore(3, 4);
    LstmCellArgs args{gates.tensor(), {}, acts.tensor(), c.tensor(), h.tensor()};
    LstmCellDxArgs dx{acts.tensor(), {}, c.tensor(), dh.tensor(), {}, dgates.tensor(), {}};
    if (state) {
      args.c_before = dx.c_before = before.tensor();
      dx.dc_next = dc.tensor();
      dx.dc_before = dbefore.tensor();
    }
    const auto objective = [&] {
      run64(&Ops::lstm_cell, args);
      return dot(h, dh) + (state ? dot(c, dc) : 0.0);
    };
    objective();
    run64(&Ops::lstm_cell_dx, dx);
    expect_gradient("dgates", gates, dgates, objective);
    if (state) expect_gradient("dc_before", before, dbefore, objective);
  }
}

TEST(LstmCell, IsTheFormula) {
  const F64 gates = F64::random(1, 4, 34), before = F64::random(1, 1, 35), acts(1, 4), c(1, 1);
  const F64 h(1, 1);
  run64(&Ops::lstm_cell,
        LstmCellArgs{gates.tensor(), before.tensor(), acts.tensor(), c.tensor(), h.tensor()});
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double cell = sigmoid(gates[1]) * before[0] + sigmoid(gates[0]) * std::tanh(gates[2]);
  expect_close("c", c[0], cell);
  expect_close("h", h[0], sigmoid(gates[3]) * std::tanh(cell));
}

TEST(GruCellDx, IsTheGradientOfGruCell) {
  const F64 gx = F64::random(3, 15, 36, 1), gh = F64::random(3, 15, 37), h(3, 5), acts(3, 15);
  const F64 before = F64::random(3, 5, 38), dh = F64::random(3, 5, 39);
  const F64 dgx(3, 15), dgh(3, 15, 2), dbefore(3, 5);
  const auto objective = [&] {
    run64(&Ops::gru_cell,
          GruCellArgs{gx.tensor(), gh.tensor(), before.tensor(), acts.tensor(), h.tensor()});
    return dot(h, dh);
  };
  objective();
  run64(&Ops::gru_cell_dx, GruCellDxArgs{acts.tensor(), gh.tensor(), before.tensor(), dh.tensor(),
                                         dgx.tensor(), dgh.tensor(), dbefore.tensor()});
  expect_gradient("dgx", gx, dgx, objective);
  expect_gradient("dgh", gh, dgh, objective);
  expect_gradient("dh_before", before, dbefore, objective);
}

TEST(GruCell, IsTheFormula) {
  const F64 gx = F64::random(1, 3, 40), gh = F64::random(1, 3, 41), before = F64::random(1, 1, 42);
  const F64 acts(1, 3), h(1, 1);
  run64(&Ops::gru_cell,
        GruCellArgs{gx.tensor(), gh.tensor(), before.tensor(), acts.tensor(), h.tensor()});
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double r = sigmoid(gx[0] + gh[0]), z = sigmoid(gx[1] + gh[1]);
  expect_close("h", h[0], (1 - z) * std::tanh(gx[2] + r * gh[2]) + z * before[0]);
}

}  // namespace
}  // namespace loom::core
