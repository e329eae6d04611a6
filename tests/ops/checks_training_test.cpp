// The refusals of the recorder for training ops, with the exact line for the user. checks_test.cpp
// breaks the rules that all ops share.
#include "ops/check_testing.hpp"

namespace loom::core {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

const Tensor kNone;

TEST(TrainingChecks, Products) {
  const Tensor y = f32(3, 4, 2);
  expect({
      {check(GemmArgs{f32(3, 5), f32(5, 4, 1), y}), ""},
      {check(GemmArgs{f32(5, 3), f32(4, 5, 1), y, true, true, true}), ""},
      {check(GemmArgs{f32(3, 5), f32(4, 5, 1), y}),
       "gemm: a [3, 5] and b [4, 5] do not agree: their inner extents are 5 and 4"},
      {check(GemmArgs{f32(3, 5), f32(5, 4, 1), f32(4, 3, 2)}),
       "gemm: y [4, 3] must have 3 rows of 4"},
      {check(GemmArgs{f32(3, 5), f32(5, 4, 1), f32(3, 4, 1)}),
       "gemm: y [3, 4] and b [5, 4] share memory: the result needs its own"},
      {check(GemmArgs{of_dtype(f32(3, 5), DType::f64), f32(5, 4, 1), y}),
       "gemm: b [5, 4] is plain float32: it must be plain float64"},
      {check(MatmulDxArgs{f32(3, 6), r16(6, 5), f32(3, 5, 1)}), ""},
      {check(MatmulDxArgs{f32(3, 5), r16(6, 5), f32(3, 5, 1)}),
       "matmul_dx: dy [3, 5] and w [6, 5] do not agree: dy must be as wide as w has rows"},
      {check(MatmulDxArgs{f32(3, 6), r16(6, 5), f32(3, 6, 1)}),
       "matmul_dx: dx [3, 6] must have 3 rows of 5"},
      {check(SquaredDistanceArgs{f32(3, 5), r16(6, 5), f32(3, 6, 1)}), ""},
      {check(SquaredDistanceArgs{f32(3, 4), r16(6, 5), f32(3, 6, 1)}),
       "squared_distance: x [3, 4] and c [6, 5] do not agree: both must have the same last extent"},
  });
}

TEST(TrainingChecks, SumsOverRows) {
  expect({
      {check(ReduceColsArgs{f32(3, 4), f32_vec(4, 1)}), ""},
      {check(ReduceColsArgs{f32(3, 4), f32_vec(3, 1)}),
       "reduce_cols: y [3] has 3 values: it must have 4"},
      {check(ReduceColsArgs{f32(3, 4), f32_vec(4)}),
       "reduce_cols: y [4] and x [3, 4] share memory: the result needs its own"},
      {check(ScatterAddRowsArgs{f32(3, 4), i32(1, 3), f32(9, 4, 1)}), ""},
      {check(ScatterAddRowsArgs{f32(3, 4), i32(1, 2), f32(9, 4, 1)}),
       "scatter_add_rows: ids [1, 2] has 2 values: it must have 3"},
      {check(ScatterAddRowsArgs{f32(3, 4), i32(1, 3), f32(9, 5, 1)}),
       "scatter_add_rows: dy [3, 4] and table [9, 5] do not agree: both must have the same last "
       "extent"},
  });
}

TEST(TrainingChecks, GradientsOfRows) {
  const Tensor x = f32(3, 4), dy = f32(3, 4, 1), dx = f32(3, 4, 2), other = f32(3, 4, 3);
  expect({
      {check(UnaryDxArgs{x, dy, dx, UnaryKind::silu}), ""},
      {check(UnaryDxArgs{x, dy, dy, UnaryKind::silu}), ""},
      {check(UnaryDxArgs{x, dy, x, UnaryKind::tanh, true}), ""},
      {check(UnaryDxArgs{x, dy, dx, UnaryKind::silu, true}),
       "unary_dx: kind 4 has no derivative from its output: x must hold the input"},
      {check(UnaryDxArgs{x, f32(3, 5, 1), dx}),
       "unary_dx: x [3, 4] and dy [3, 5] do not agree: both must have the same shape"},
      {check(GatedDxArgs{x, other, dy, dx, f32(3, 4, 4)}), ""},
      {check(GatedDxArgs{x, other, dy, x, other}), ""},
      {check(GatedDxArgs{x, other, dy, dx, dx}),
       "gated_dx: dgate [3, 4] and dup [3, 4] share memory: the result needs its own"},
      {check(NormDxArgs{x, f32_vec(4, 4), dy, dx, other}), ""},
      {check(NormDxArgs{x, kNone, dy, dy, kNone}), ""},
      {check(NormDxArgs{x, f32_vec(3, 4), dy, dx, kNone}),
       "norm_dx: gamma [3] has 3 values: it must have 4"},
      {check(NormDxArgs{x, kNone, dy, dx, dx}),
       "norm_dx: dx [3, 4] and scaled [3, 4] share memory: the result needs its own"},
      {check(NormDxArgs{x, kNone, dy, dx, kNone, 1e-5f, NormKind::rms, 3}),
       "norm_dx: x [3, 4] cannot be cut into 3 segments: the last extent must divide"},
      {check(SoftmaxDxArgs{x, dy, dy}), ""},
      {check(SoftmaxDxArgs{x, dy, f32(4, 4, 2)}),
       "softmax_dx: y [3, 4] and dx [4, 4] do not agree: both must have the same shape"},
      {check(EntmaxArgs{x, x}), ""},
      {check(EntmaxArgs{x, x, 1.0f, 1.0f}), "entmax: alpha is 1: it must be above 1"},
      {check(EntmaxDxArgs{x, dy, dx, 1.0f, 2.0f}), ""},
      {check(EntmaxDxArgs{x, dy, dx, 1.0f, 0.5f}), "entmax_dx: alpha is 0.5: it must be above 1"},
  });
}

ConvShape shape() {
  ConvShape s;
  s.channels = 2, s.filters = 4, s.groups = 2;
  s.in[0] = 3, s.in[1] = 3;
  s.out[0] = 2, s.out[1] = 2;
  s.kernel[0] = 2, s.kernel[1] = 2;
  return s;
}

TEST(TrainingChecks, Convolutions) {
  const Tensor x = f32(3, 18), w = r16(4, 4), y = f32(3, 16, 1), bias = f32_vec(4, 2);
  ConvShape thin = shape(), uneven = shape(), huge = shape();
  thin.stride[1] = 0;
  uneven.groups = 3;
  huge.in[2] = int64_t{1} << 31;
  ConvShape wrapped = shape();
  wrapped.in[0] = wrapped.in[1] = wrapped.in[2] = (int64_t{1} << 31) - 1;
  expect({
      {check(ConvArgs{x, w, bias, y, shape()}), ""},
      {check(ConvArgs{x, w, kNone, y, shape()}), ""},
      {check(ConvArgs{x, w, kNone, y, thin}),
       "conv: a number of its shape is out of range: positive, extents of the samples and padding "
       "not negative, all below 2^31"},
      {check(ConvArgs{x, w, kNone, y, huge}),
       "conv: a number of its shape is out of range: positive, extents of the samples and padding "
       "not negative, all below 2^31"},
      {check(ConvArgs{x, w, kNone, y, uneven}),
       "conv: 2 channels and 4 filters cannot be cut into 3 groups"},
      {check(ConvArgs{x, w, kNone, y, wrapped}),
       "conv: x [3, 18] does not hold 2 channels of [2147483647, 2147483647, 2147483647] in a row"},
      {check(ConvArgs{x, w, kNone, f32(3, 12, 1), shape()}),
       "conv: y [3, 12] does not hold 4 filters of [2, 2, 1] in a row"},
      {check(ConvArgs{x, r16(4, 8), kNone, y, shape()}),
       "conv: w [4, 8] does not hold 4 filters of 1 channels of [2, 2, 1]"},
      {check(ConvArgs{x, w, kNone, f32(2, 16, 1), shape()}),
       "conv: x [3, 18] and y [2, 16] do not agree: both must have the same number of rows"},
      {check(ConvArgs{x, w, f32_vec(2, 2), y, shape()}),
       "conv: bias [2] has 2 values: it must have 4"},
      {check(ConvDxArgs{y, w, f32_vec(2, 2), x, shape()}), ""},
      {check(ConvDxArgs{y, w, kNone, x, shape(), Activation::linear, true}), ""},
      {check(ConvDxArgs{y, w, kNone, x, shape(), Activation::relu, true}),
       "conv_dx: what accumulates takes neither bias nor activation"},
      {check(ConvDxArgs{y, w, bias, x, shape()}), "conv_dx: bias [4] has 4 values: it must have 2"},
      {check(ConvDwArgs{x, y, f32(4, 4, 2), shape()}), ""},
      {check(ConvDwArgs{x, y, f32(4, 5, 2), shape()}),
       "conv_dw: dw [4, 5] does not hold 4 filters of 1 channels of [2, 2, 1]"},
      {check(ConvDwArgs{x, y, f32(4, 4, 1), shape()}),
       "conv_dw: dw [4, 4] and dy [3, 16] share memory: the result needs its own"},
  });
}

Status attend(Tensor q, Tensor k, Tensor mask, Tensor y, int64_t sequences, int64_t heads,
              int64_t kv_heads, int64_t window = 0, float soft_cap = 0.0f) {
  return check(AttendArgs{q, k, f32(k.rows(), k.cols(), 5), y, mask, sequences, heads, kv_heads,
                          window, 1.0f, true, soft_cap});
}

TEST(TrainingChecks, Attention) {
  const Tensor q = f32(6, 8), k = f32(6, 4, 1), y = f32(6, 8, 2);
  expect({
      {attend(q, k, kNone, y, 2, 4, 2), ""},
      {attend(q, k, f32(2, 3, 3), y, 2, 4, 2), ""},
      {attend(q, k, f32(3, 2, 3), y, 2, 4, 2), "attend: mask [3, 2] must have 2 rows of 3"},
      {attend(q, k, kNone, y, 4, 4, 2),
       "attend: q [6, 8] cannot be cut into 4 sequences: the first extent must divide"},
      {attend(q, k, kNone, y, 0, 4, 2),
       "attend: q [6, 8] cannot be cut into 0 sequences: the first extent must divide"},
      {attend(q, k, kNone, y, 2, 4, 3), "attend: 4 heads do not divide among 3 kv heads"},
      {attend(q, k, kNone, y, 2, 4, 4),
       "attend: q [6, 8] and k [6, 4] do not agree: as many rows, 4 and 4 heads of one width"},
      {attend(q, k, kNone, y, 2, 4, 2, -1), "attend: window is -1: it must not be negative"},
      {attend(q, k, kNone, y, 2, 4, 2, 0, 3.0f), ""},
      {attend(q, k, kNone, y, 2, 4, 2, 0, __builtin_nanf("")),
       "attend: soft_cap is nan: it must be finite and not negative"},
      {attend(q, k, kNone, q, 2, 4, 2),
       "attend: y [6, 8] and q [6, 8] share memory: the result needs its own"},
      {check(AttendDxArgs{q, k, f32(6, 4, 5), y, kNone, f32(6, 8, 3), f32(6, 4, 4), f32(6, 4, 6), 2,
                          4, 2}),
       ""},
      {check(AttendDxArgs{q, k, f32(6, 4, 5), y, kNone, f32(6, 8, 3), f32(6, 4, 4), f32(6, 4, 4), 2,
                          4, 2}),
       "attend_dx: dk [6, 4] and dv [6, 4] share memory: the result needs its own"},
      {check(AttendDxArgs{q, k, f32(6, 4, 5), y, kNone, f32(6, 8, 3), f32(6, 8, 4), f32(6, 4, 6), 2,
                          4, 2}),
       "attend_dx: k [6, 4] and dk [6, 8] do not agree: both must have the same shape"},
  });
}

TEST(TrainingChecks, Cells) {
  const Tensor gates = f32(3, 8), c_before = f32(3, 2, 1), acts = f32(3, 8, 2), c = f32(3, 2, 3),
               h = f32(3, 2, 4), wide = f32(3, 6, 5), acts3 = f32(3, 6, 6);
  expect({
      {check(LstmCellArgs{gates, c_before, acts, c, h}), ""},
      {check(LstmCellArgs{gates, kNone, gates, c, h}), ""},
      {check(LstmCellArgs{gates, c_before, acts, c_before, h}), ""},
      {check(LstmCellArgs{f32(3, 6), c_before, acts, c, h}),
       "lstm_cell: gates [3, 6] must have 3 rows of 8"},
      {check(LstmCellArgs{gates, c_before, acts, c, c}),
       "lstm_cell: h [3, 2] and c [3, 2] share memory: the result needs its own"},
      {check(LstmCellDxArgs{acts, c_before, c, h, kNone, gates, kNone}), ""},
      {check(LstmCellDxArgs{acts, kNone, c, kNone, h, acts, h}), ""},
      {check(LstmCellDxArgs{acts, c_before, c, f32(3, 3, 4), kNone, gates, kNone}),
       "lstm_cell_dx: dh [3, 3] must have 3 rows of 2"},
      {check(LstmCellDxArgs{acts, c_before, c, h, kNone, gates, h}),
       "lstm_cell_dx: dc_before [3, 2] and dh [3, 2] share memory: the result needs its own"},
      {check(GruCellArgs{wide, f32(3, 6), c_before, acts3, h}), ""},
      {check(GruCellArgs{wide, f32(3, 6), c_before, acts3, c_before}), ""},
      {check(GruCellArgs{wide, gates, c_before, acts3, h}),
       "gru_cell: gh [3, 8] must have 3 rows of 6"},
      {check(GruCellArgs{wide, f32(3, 6), c_before, f32(3, 6), h}),
       "gru_cell: acts [3, 6] and gh [3, 6] share memory: the result needs its own"},
      {check(GruCellDxArgs{acts3, wide, c_before, h, f32(3, 6), f32(3, 6, 7), c}), ""},
      {check(GruCellDxArgs{acts3, wide, kNone, h, acts3, wide, kNone}), ""},
      {check(GruCellDxArgs{acts3, wide, c_before, h, f32(3, 6), f32(3, 6), c}),
       "gru_cell_dx: dgh [3, 6] and dgx [3, 6] share memory: the result needs its own"},
  });
}

TEST(TrainingChecks, Random) {
  expect({
      {check(RandomArgs{f32(3, 4), kNone}), ""},
      {check(RandomArgs{f32(3, 4), f32_vec(1, 1)}), ""},
      {check(RandomArgs{f32(3, 4), f32_vec(2, 1)}),
       "random: step [2] has 2 values: it must have 1"},
  });
}

Status loss(LossKind kind, Tensor target, float delta = 1.0f, float smoothing = 0.0f) {
  return check(LossArgs{f32(3, 4), target, f32_vec(3, 2), f32_vec(3, 3), f32(3, 4, 4), kind, delta,
                        smoothing});
}

TEST(TrainingChecks, Loss) {
  const Tensor pred = f32(3, 4), target = f32(3, 4, 1), sums = f32_vec(3, 3);
  expect({
      {loss(LossKind::mse, target), ""},
      {loss(LossKind::softmax_ce, target), ""},
      {loss(LossKind::softmax_ce, i32(1, 3)), ""},
      {loss(LossKind::softmax_ce, i32(1, 4)), "loss: target [1, 4] has 4 values: it must have 3"},
      {loss(LossKind::kl, i32(1, 3)),
       "loss: target [1, 3] is plain int32: it must be plain float32"},
      {loss(LossKind::mse, f32(3, 5, 1)),
       "loss: pred [3, 4] and target [3, 5] do not agree: both must have the same shape"},
      {loss(LossKind::huber, target, 0.0f), "loss: delta is 0: it must be positive"},
      {loss(LossKind::softmax_ce, target, 1.0f, 1.5f),
       "loss: smoothing is 1.5: it must be in [0, 1]"},
      {check(LossArgs{pred, target, kNone, sums, kNone}), ""},
      {check(LossArgs{pred, target, kNone, sums, pred}), ""},
      {check(LossArgs{pred, target, kNone, kNone, pred}), ""},
      {check(LossArgs{pred, target, kNone, kNone, kNone}),
       "loss: row_loss and dpred are both empty: give one of them"},
      {check(LossArgs{pred, target, kNone, sums, target}),
       "loss: dpred [3, 4] and target [3, 4] share memory: the result needs its own"},
      {check(LossArgs{f32(3, 0), f32(3, 0, 1), kNone, sums, kNone}),
       "loss: pred [3, 0] has empty rows"},
  });
}

TEST(TrainingChecks, Optimize) {
  const Tensor p = f32(3, 4), g = f32(3, 4, 1), m = f32(3, 4, 2), v = f32(3, 4, 3),
               hyper = f32_vec(4, 4), scale = f32_vec(1, 5);
  using enum UpdateKind;
  expect({
      {check(OptimizeArgs{p, g, kNone, kNone, hyper, kNone, sgd}), ""},
      {check(OptimizeArgs{p, g, m, kNone, hyper, scale, lion}), ""},
      {check(OptimizeArgs{p, g, kNone, v, hyper, scale, rmsprop}), ""},
      {check(OptimizeArgs{p, g, m, v, hyper, scale, adamw}), ""},
      {check(OptimizeArgs{p, g, m, kNone, hyper, scale, adam}),
       "optimize: v is missing: this kind of update needs it"},
      {check(OptimizeArgs{p, g, kNone, kNone, hyper, scale, momentum}),
       "optimize: m is missing: this kind of update needs it"},
      {check(OptimizeArgs{p, g, kNone, kNone, scale, kNone, sgd}),
       "optimize: hyper [1] has 1 values: it must have 4"},
      {check(OptimizeArgs{p, g, m, m, hyper, kNone, adam}),
       "optimize: m [3, 4] and v [3, 4] share memory: the result needs its own"},
      {check(OptimizeArgs{p, p, kNone, kNone, hyper, kNone, sgd}),
       "optimize: p [3, 4] and g [3, 4] share memory: the result needs its own"},
      {check(OptimizeArgs{p, g, f32(4, 4, 2), kNone, hyper, kNone, lion}),
       "optimize: p [3, 4] and m [4, 4] do not agree: both must have the same shape"},
  });
}

TEST(TrainingChecks, OptimizeSomeRows) {
  const auto some = [](Tensor g, Tensor rows) {
    OptimizeArgs args{f32(9, 4), g, f32(9, 4, 2), kNone, f32_vec(4, 4)};
    args.rows = rows;
    return check(args);
  };
  expect({
      {some(f32(3, 4, 1), i32(1, 3)), ""},
      {some(f32(3, 4, 1), i32(1, 2)), "optimize: g [3, 4] must have 2 rows of 4"},
      {some(f32(3, 5, 1), i32(1, 3)), "optimize: g [3, 5] must have 3 rows of 4"},
      {some(f32(3, 4, 1), f32_vec(3, 3)),
       "optimize: rows [3] is plain float32: it must be plain int32"},
      {some(f32(3, 4, 1), of_dtype(f32_vec(3, 0), DType::i32)),
       "optimize: p [9, 4] and rows [3] share memory: the result needs its own"},
      {some(f32(3, 4, 1), of_dtype(f32_vec(3, 2), DType::i32)),
       "optimize: m [9, 4] and rows [3] share memory: the result needs its own"},
  });
}

}  // namespace
}  // namespace loom::core
