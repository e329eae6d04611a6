// The refusals of the recorder: every rule of every op is broken once, with the exact line for the
// user.
#include "ops/checks.hpp"

#include <cmath>

#include "ops/check_testing.hpp"

namespace loom::core {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace)

Status matmul(Tensor x, Tensor w, Tensor bias, Tensor y) {
  MatmulArgs args;
  args.x = x, args.w = w, args.bias = bias, args.y = y;
  return check(args);
}

TEST(Checks, Matmul) {
  const Tensor none;
  expect({
      {matmul(f32(3, 5), r16(6, 5), none, f32(3, 6, 1)), ""},
      {matmul(f32(3, 5), r16(6, 5), f32_vec(6, 2), f32(3, 6, 1)), ""},
      {matmul(f32_vec(5), r16(6, 5), none, f32_vec(6, 1)), ""},
      {matmul(f32(0, 5), r16(6, 5), none, f32(0, 6, 1)), ""},
      {matmul(f32(3, 0), r16(6, 0), none, f32(3, 6, 1)), ""},
      {matmul(f32(3, 5), r16(4, 6), none, f32(3, 4, 1)),
       "matmul: x [3, 5] and w [4, 6] do not agree: both must have the same last extent"},
      {matmul(f32(3, 5), f32(6, 5, 2), none, f32(3, 6, 1)),
       "matmul: w [6, 5] is plain float32: it must be a packed matrix"},
      {matmul(f32(3, 5), r16(6, 5), none, f32(3, 5, 1)),
       "matmul: y [3, 5] does not fit x [3, 5] and w [6, 5]: it must have 3 rows of 6"},
      {matmul(f32(3, 5), r16(6, 5), none, f32(2, 6, 1)),
       "matmul: y [2, 6] does not fit x [3, 5] and w [6, 5]: it must have 3 rows of 6"},
      {matmul(f32(3, 5), r16(6, 5), f32_vec(5, 2), f32(3, 6, 1)),
       "matmul: bias [5] has 5 values: it must have 6"},
      {matmul(of_dtype(f32(3, 5), DType::f16), r16(6, 5), none, f32(3, 6, 1)),
       "matmul: x [3, 5] is plain float16: it must be plain float32"},
      {matmul(f32(3, 5), r16(6, 5), none, f32(3, 6, 0)),
       "matmul: y [3, 6] and x [3, 5] share memory: the result needs its own"},
      {matmul(f32(3, 5), r16(6, 5), f32_vec(6, 1), f32(3, 6, 1)),
       "matmul: y [3, 6] and bias [6] share memory: the result needs its own"},
      {matmul(f32(3, 5), r16(6, 5, DType::f32, 1), none, f32(3, 6, 1)),
       "matmul: y [3, 6] and w [6, 5] share memory: the result needs its own"},
      {matmul(strided(f32(3, 5), 4), r16(6, 5), none, f32(3, 6, 1)),
       "matmul: x [3, 5] has rows that overlap: its row stride is 4"},
      {matmul(no_memory(f32(3, 5)), r16(6, 5), none, f32(3, 6, 1)),
       "matmul: x [3, 5] has no memory"},
      {matmul(f32(3, -5), r16(6, -5), none, f32(3, 6, 1)),
       "matmul: x [3, -5] has a negative extent"},
  });
}

TEST(Checks, ActivationsAreOfOneComputeType) {
  const auto f64 = [](Tensor t) { return of_dtype(t, DType::f64); };
  const Tensor none;
  expect({
      {matmul(f64(f32(3, 5)), r16(6, 5), f64(f32_vec(6, 2)), f64(f32(3, 6, 1))), ""},
      {matmul(f64(f32(3, 5)), r16(6, 5), none, f32(3, 6, 1)),
       "matmul: y [3, 6] is plain float32: it must be plain float64"},
      {matmul(f32(3, 5), r16(6, 5), f64(f32_vec(6, 2)), f32(3, 6, 1)),
       "matmul: bias [6] is plain float64: it must be plain float32"},
      {check(UnaryArgs{f64(f32(3, 4)), f64(f32(3, 4, 1))}), ""},
      {check(UnaryArgs{f64(f32(3, 4)), f32(3, 4, 1)}),
       "unary: y [3, 4] is plain float32: it must be plain float64"},
      {check(GatherRowsArgs{f32(9, 5, 1), i32(3, 1), f64(f32(3, 5))}),
       "gather_rows: table [9, 5] is plain float32: it must be plain float64"},
      {check(RopeArgs{f64(f32(3, 12)), f64(f32(3, 12)), f32(8, 2, 2), f32(8, 2, 3), 3}), ""},
      {check(RopeArgs{f32(3, 12), f32(3, 12), f64(f32(8, 2, 2)), f32(8, 2, 3), 3}),
       "rope: cos [8, 2] is plain float64: it must be plain float32"},
      {check(QuantizeRowsArgs{f64(f32(2, 33)), q8(2, 33, 2)}),
       "quantize_rows: x [2, 33] is plain float64: it must be plain float32"},
      {check(ConvertArgs{r16(3, 4), f64(f32(3, 4))}), ""},
  });
}

TEST(Checks, QuantizeRows) {
  Q8Rows nowhere = q8(2, 33, 2);
  nowhere.sums = nullptr;
  expect({
      {check(QuantizeRowsArgs{f32(2, 33), q8(2, 33, 2)}), ""},
      {check(QuantizeRowsArgs{f32(0, 33), q8(0, 33, 2)}), ""},
      {check(QuantizeRowsArgs{f32(2, 33), q8(2, 33, 1)}),
       "quantize_rows: x [2, 33] does not fit q: 2 rows of 33 values in 1 blocks of 32"},
      {check(QuantizeRowsArgs{f32(2, 33), q8(3, 33, 2)}),
       "quantize_rows: x [2, 33] does not fit q: 3 rows of 33 values in 2 blocks of 32"},
      {check(QuantizeRowsArgs{f32(2, 33), nowhere}), "quantize_rows: q has no memory"},
  });
}

TEST(Checks, Pack) {
  const PackArgs stochastic{f32(6, 5), r16(6, 5, DType::i8), ScaleScope::per_tensor, true};
  expect({
      {check(stochastic), "pack: stochastic rounding takes a scale per row"},
      {check(PackArgs{f32(6, 5), r16(6, 5)}), ""},
      {check(PackArgs{f32(6, 5), r16(5, 6)}),
       "pack: src [6, 5] and w [5, 6] do not agree: both must have the same shape"},
      {check(PackArgs{strided(f32(6, 5), 7), r16(6, 5)}),
       "pack: src [6, 5] has gaps: its row stride is 7"},
      {check(PackArgs{f32(6, 5), f32(6, 5, 1)}),
       "pack: w [6, 5] is plain float32: it must be a packed matrix"},
      {check(PackArgs{f32(6, 5, 8), r16(6, 5)}),
       "pack: w [6, 5] and src [6, 5] share memory: the result needs its own"},
  });
}

// Ranges of scales, kept between packings.
TEST(Checks, PackWithHeldRanges) {
  const auto pack = [](DType dtype, Tensor ranges, ScaleScope scope = ScaleScope::per_row,
                       float band = 0.125f) {
    PackArgs args{f32(6, 5), r16(6, 5, dtype), scope};
    args.ranges = ranges;
    args.band = band;
    return check(args);
  };
  PackArgs mixed{of_dtype(f32(6, 5), DType::f64), r16(6, 5, DType::i8)};
  mixed.ranges = f32_vec(6, 1);
  expect({
      {pack(DType::i8, f32_vec(6, 1)), ""},
      {pack(DType::u8, f32(6, 2, 1)), ""},
      {pack(DType::i8, f32_vec(1, 1), ScaleScope::per_tensor), ""},
      {pack(DType::i8, f32_vec(5, 1)), "pack: ranges [5] has 5 values: it must have 6"},
      {pack(DType::u8, f32_vec(6, 1)), "pack: ranges [6] has 6 values: it must have 12"},
      {pack(DType::u8, f32_vec(6, 1), ScaleScope::per_tensor),
       "pack: ranges [6] has 6 values: it must have 2"},
      {pack(DType::q4_0, f32_vec(6, 1)), "pack: q4_0 has no scale per row whose range is held"},
      {pack(DType::f32, f32_vec(6, 1)), "pack: float32 has no scale per row whose range is held"},
      {pack(DType::i8, f32_vec(6, 1), ScaleScope::per_row, 1.0f),
       "pack: band is 1: it must be in [0, 1)"},
      {pack(DType::i8, f32_vec(6)),
       "pack: ranges [6] and src [6, 5] share memory: the result needs its own"},
      {pack(DType::i8, f32_vec(6, 8)),
       "pack: ranges [6] and w [6, 5] share memory: the result needs its own"},
      {check(mixed), "pack: src [6, 5] is plain float64: it must be plain float32"},
  });
}

TEST(Checks, PackSomeRows) {
  const auto pack = [](Tensor rows, DType dtype = DType::i8,
                       ScaleScope scope = ScaleScope::per_row) {
    PackArgs args{f32(6, 5), r16(6, 5, dtype), scope};
    args.rows = rows;
    return check(args);
  };
  expect({
      {pack(i32(1, 3)), ""},
      {pack(i32(1, 3), DType::q4_0), ""},
      {pack(f32_vec(3, 1)), "pack: rows [3] is plain float32: it must be plain int32"},
      {pack(i32(1, 3), DType::i8, ScaleScope::per_tensor),
       "pack: rows alone need a scale per row; int8 has one of the tensor here"},
      {pack(i32(1, 3), DType::nvfp4),
       "pack: rows alone need a scale per row; nvfp4 has one of the tensor here"},
  });
}

TEST(Checks, DistinctRows) {
  const auto list = [](int64_t n, int slot) { return of_dtype(f32_vec(n, slot), DType::i32); };
  expect({
      {check(DistinctRowsArgs{i32(2, 3), list(9, 0), list(6, 1), list(6, 2)}), ""},
      {check(DistinctRowsArgs{f32(2, 3, 3), list(9, 0), list(6, 1), list(6, 2)}),
       "distinct_rows: ids [2, 3] is plain float32: it must be plain int32"},
      {check(DistinctRowsArgs{i32(2, 3), list(9, 0), list(5, 1), list(6, 2)}),
       "distinct_rows: rows [5] has 5 values: it must have 6"},
      {check(DistinctRowsArgs{i32(2, 3), list(9, 0), list(6, 1), list(6, 1)}),
       "distinct_rows: first [6] and rows [6] share memory: the result needs its own"},
      {check(DistinctRowsArgs{list(6, 0), list(9, 0), list(6, 1), list(6, 2)}),
       "distinct_rows: seen [9] and ids [6] share memory: the result needs its own"},
  });
}

TEST(Checks, GatherRows) {
  expect({
      {check(GatherRowsArgs{r16(9, 5), i32(1, 3), f32(3, 5)}), ""},
      {check(GatherRowsArgs{f32(9, 5, 1), i32(3, 1), f32(3, 5)}), ""},
      {check(GatherRowsArgs{r16(9, 5), i32(1, 4), f32(3, 5)}),
       "gather_rows: ids [1, 4] has 4 values: it must have 3"},
      {check(GatherRowsArgs{r16(9, 5), f32_vec(3, 1), f32(3, 5)}),
       "gather_rows: ids [3] is plain float32: it must be plain int32"},
      {check(GatherRowsArgs{r16(9, 6), i32(1, 3), f32(3, 5)}),
       "gather_rows: table [9, 6] and y [3, 5] do not agree: both must have the same last extent"},
      {check(GatherRowsArgs{f32(9, 5), i32(1, 3), f32(3, 5)}),
       "gather_rows: y [3, 5] and table [9, 5] share memory: the result needs its own"},
  });
}

Status norm(Tensor x, Tensor gamma, Tensor beta, Tensor y, NormKind kind, int64_t segments,
            float eps = 1e-5f) {
  return check(NormArgs{x, gamma, beta, y, eps, kind, segments});
}

TEST(Checks, Norm) {
  const Tensor none;
  const Tensor x = f32(3, 6), y = f32(3, 6, 1);
  expect({
      {norm(x, none, none, y, NormKind::rms, 1), ""},
      {norm(x, f32_vec(6, 2), f32_vec(6, 3), x, NormKind::layer, 1), ""},
      {norm(x, f32_vec(2, 2), none, y, NormKind::rms, 3), ""},
      {norm(x, f32_vec(6, 2), none, y, NormKind::rms, 3), ""},
      {norm(x, f32_vec(3, 2), none, y, NormKind::rms, 3),
       "norm: gamma [3] has 3 values: it must have 2"},
      {norm(x, none, none, y, NormKind::rms, 4),
       "norm: x [3, 6] cannot be cut into 4 segments: the last extent must divide"},
      {norm(x, none, none, y, NormKind::rms, 0),
       "norm: x [3, 6] cannot be cut into 0 segments: the last extent must divide"},
      {norm(x, none, f32_vec(6, 2), y, NormKind::rms, 1), "norm: rms takes no beta"},
      {norm(x, none, f32_vec(5, 2), y, NormKind::layer, 1),
       "norm: beta [5] has 5 values: it must have 6"},
      {norm(x, none, none, f32(3, 5, 1), NormKind::rms, 1),
       "norm: x [3, 6] and y [3, 5] do not agree: both must have the same shape"},
      {norm(x, f32_vec(6, 1), none, y, NormKind::rms, 1),
       "norm: y [3, 6] and gamma [6] share memory: the result needs its own"},
      {norm(x, none, none, f32_matrix(pool + 6, 3, 6), NormKind::rms, 1),
       "norm: y [3, 6] and x [3, 6] share memory: the result needs its own"},
      {norm(x, none, none, y, NormKind::rms, 1, -1.0f), "norm: eps is -1: it must not be negative"},
      {norm(x, none, none, y, NormKind::rms, 1, __builtin_nanf("")),
       "norm: eps is nan: it must not be negative"},
  });
}

TEST(Checks, Rope) {
  const Tensor x = f32(3, 12), cos = f32(8, 2, 1), sin = f32(8, 2, 2);
  expect({
      {check(RopeArgs{x, x, cos, sin, 3, 5}), ""},
      {check(RopeArgs{x, f32(3, 12, 3), cos, sin, 3, 5}), ""},
      {check(RopeArgs{x, x, cos, sin, 3, 7, 1}), ""},
      {check(RopeArgs{f32(12, 12), f32(12, 12, 3), cos, sin, 3, 2, 6, true}), ""},
      {check(RopeArgs{f32(12, 12), f32(12, 12, 3), cos, sin, 3, 3, 6}),
       "rope: x [12, 12] at position 3 does not fit cos [8, 2]"},
      {check(RopeArgs{x, x, cos, sin, 3, 0, 2}),
       "rope: x [3, 12] cannot be cut into runs of 2 rows: the first extent must divide"},
      {check(RopeArgs{x, x, cos, sin, 3, 0, -1}),
       "rope: x [3, 12] cannot be cut into runs of -1 rows: the first extent must divide"},
      {check(RopeArgs{x, f32(3, 10, 3), cos, sin, 3, 5}),
       "rope: x [3, 12] and y [3, 10] do not agree: both must have the same shape"},
      {check(RopeArgs{x, x, cos, sin, 3, 6}),
       "rope: x [3, 12] at position 6 does not fit cos [8, 2]"},
      {check(RopeArgs{x, x, cos, sin, 3, -1}),
       "rope: x [3, 12] at position -1 does not fit cos [8, 2]"},
      {check(RopeArgs{x, x, cos, sin, 2, 0}),
       "rope: x [3, 12] and cos [8, 2] do not agree: each of 2 heads must be twice as wide as cos"},
      {check(RopeArgs{x, x, cos, sin, 5, 0}),
       "rope: x [3, 12] cannot be cut into 5 heads: the last extent must divide"},
      {check(RopeArgs{x, x, cos, sin, 0, 0}),
       "rope: x [3, 12] cannot be cut into 0 heads: the last extent must divide"},
      {check(RopeArgs{x, x, cos, f32(8, 3, 2), 3, 0}),
       "rope: cos [8, 2] and sin [8, 3] do not agree: both must have the same shape"},
      {check(RopeArgs{x, x, f32(8, 1, 1), f32(8, 1, 2), 3, 0, 0, false, 2}), ""},
      {check(RopeArgs{x, x, cos, sin, 3, 0, 0, false, 4}), ""},
      {check(RopeArgs{x, x, cos, sin, 3, 0, 0, false, 2}),
       "rope: rotary_dim is 2: it must be twice as wide as cos [8, 2]"},
      {check(RopeArgs{x, x, cos, sin, 3, 0, 0, false, 6}),
       "rope: rotary_dim is 6: a head has 4 values"},
      {check(RopeArgs{x, x, cos, sin, 3, 0, 0, false, -2}),
       "rope: rotary_dim is -2: a head has 4 values"},
      {check(RopeArgs{x, x, f32(8, 2, 0), sin, 3, 0}),
       "rope: y [3, 12] and cos [8, 2] share memory: the result needs its own"},
  });
}

Tensor places_of(int64_t rows, int64_t cols = 2) {
  static int32_t memory[64];
  Tensor t;
  t.dtype = DType::i32;
  t.shape = Shape{rows, cols};
  t.row_stride = cols;
  t.data = reinterpret_cast<std::byte*>(memory);
  return t;
}

TEST(Checks, RowsAtPlacesOfTheirOwn) {
  const Tensor x = f32(3, 16), y = f32(3, 16, 1), cos = f32(8, 2, 2), sin = f32(8, 2, 3);
  const auto rope = [&](const Tensor& row_positions, int64_t first, int64_t length) {
    return check(RopeArgs{x, y, cos, sin, 4, first, length, false, 0, row_positions});
  };
  const auto write = [&](const KvCache& kv, const Tensor& row_positions, int64_t first) {
    return check(KvWriteArgs{f32(3, 8), f32(3, 8, 1), kv, first, row_positions});
  };
  const auto attend = [&](const KvCache& kv, const Tensor& row_positions, int64_t first,
                          bool causal) {
    return check(AttentionArgs{x, y, kv, 4, first, 8, 0, 1.0f, causal, 0.0f, row_positions});
  };
  KvCache two = cache(2, 4, 16), none = cache(2, 4, 16);
  two.sequences = 2;
  none.sequences = 0;
  KvCache integers = two, blocks = two;
  integers.dtype = DType::i8;
  blocks.dtype = DType::q8_0;
  const std::string whose =
      "the cache has 2 sequences, so each row needs a place that says whose it is";
  expect({
      {rope(places_of(3), 0, 0), ""},
      {rope(places_of(2), 0, 0),
       "rope: places [2, 2] must be [3, 2]: a sequence and a position for each row, "
       "then pages, if there are any"},
      {rope(places_of(3), 1, 0),
       "rope: rows have places of their own and begin at 1: one or the other"},
      {rope(places_of(3), 0, 3),
       "rope: rows have places of their own and begin at 3: one or the other"},
      {write(two, places_of(3), 0), ""},
      {write(two, {}, 0), "kv_write: " + whose},
      {write(two, places_of(3, 1), 0),
       "kv_write: places [3, 1] must be [3, 2]: a sequence and a position for each row, "
       "then pages, if there are any"},
      {write(integers, places_of(3), 0),
       "kv_write: the cache is of int8: it must be float32, float16, bfloat16, q8_0 or q4_0"},
      {write(blocks, places_of(3), 0),
       "kv_write: the cache is of q8_0 and has heads of 4: they must be a multiple of 32"},
      {write(none, places_of(3), 0), "kv_write: the cache is for 0 sequences"},
      {write(two, places_of(3), 5),
       "kv_write: rows have places of their own and begin at 5: one or the other"},
      {attend(two, places_of(3), 0, true), ""},
      {attend(two, {}, 0, true), "attention: " + whose},
      {attend(two, places_of(3), 2, true),
       "attention: rows have places of their own and begin at 2: one or the other"},
      {attend(two, places_of(3), 0, false),
       "attention: rows with places of their own are causal; these are not"},
  });
}

TEST(Checks, KvWrite) {
  const Tensor k = f32(3, 8), v = f32(3, 8, 1);
  KvCache nowhere = cache(2, 4, 16);
  nowhere.values = nullptr;
  expect({
      {check(KvWriteArgs{k, v, cache(2, 4, 16), 13}), ""},
      {check(KvWriteArgs{k, v, cache(2, 4, 16), 14}),
       "kv_write: k [3, 8] at position 14 does not fit a cache of 16 positions"},
      {check(KvWriteArgs{k, v, cache(2, 4, 16), -1}),
       "kv_write: k [3, 8] at position -1 does not fit a cache of 16 positions"},
      {check(KvWriteArgs{k, v, cache(2, 3, 16), 0}),
       "kv_write: k [3, 8] does not fit a cache of 2 heads of 3"},
      {check(KvWriteArgs{k, f32(2, 8, 1), cache(2, 4, 16), 0}),
       "kv_write: k [3, 8] and v [2, 8] do not agree: both must have the same shape"},
      {check(KvWriteArgs{k, v, cache(2, 4, 20), 0}),
       "kv_write: the cache has 2 heads of 4 and 20 positions: heads and width must be positive, "
       "positions a multiple of 16"},
      {check(KvWriteArgs{k, v, cache(0, 4, 16), 0}),
       "kv_write: the cache has 0 heads of 4 and 16 positions: heads and width must be positive, "
       "positions a multiple of 16"},
      {check(KvWriteArgs{k, v, nowhere, 0}), "kv_write: the cache of 16 positions has no memory"},
  });
}

Status attention(Tensor q, Tensor y, KvCache kv, int64_t heads, int64_t first, int64_t length,
                 int64_t window = 0, bool causal = true, float soft_cap = 0.0f) {
  return check(AttentionArgs{q, y, kv, heads, first, length, window, 1.0f, causal, soft_cap});
}

TEST(Checks, Attention) {
  const Tensor q = f32(3, 16), y = f32(3, 16, 1);
  expect({
      {attention(q, y, cache(2, 4, 16), 4, 5, 8), ""},
      {attention(q, y, cache(2, 4, 16), 4, 0, 16, 3, false), ""},
      {attention(q, y, cache(2, 4, 16), 4, 6, 8),
       "attention: q [3, 16] at position 6 does not fit 8 positions"},
      {attention(q, y, cache(2, 4, 16), 4, 0, 17),
       "attention: length 17 is not within a cache of 16 positions"},
      {attention(q, y, cache(3, 4, 16), 4, 0, 8),
       "attention: 4 heads do not divide among 3 kv heads"},
      {attention(q, y, cache(2, 4, 16), 0, 0, 8),
       "attention: 0 heads do not divide among 2 kv heads"},
      {attention(q, y, cache(2, 4, 16), 2, 0, 8), "attention: q [3, 16] is not 2 heads of 4"},
      {attention(q, y, cache(2, 4, 16), 4, 0, 8, -1),
       "attention: window is -1: it must not be negative"},
      {attention(q, y, cache(2, 4, 16), 4, 5, 8, 0, true, 30.0f), ""},
      {attention(q, y, cache(2, 4, 16), 4, 5, 8, 0, true, -1.0f),
       "attention: soft_cap is -1: it must be finite and not negative"},
      {attention(q, y, cache(2, 4, 16), 4, 5, 8, 0, true, __builtin_inff()),
       "attention: soft_cap is inf: it must be finite and not negative"},
      {attention(q, f32(3, 15, 1), cache(2, 4, 16), 4, 0, 8),
       "attention: q [3, 16] and y [3, 15] do not agree: both must have the same shape"},
      {attention(q, q, cache(2, 4, 16), 4, 0, 8),
       "attention: y [3, 16] and q [3, 16] share memory: the result needs its own"},
  });
}

TEST(Checks, Elementwise) {
  const Tensor a = f32(3, 4), b = f32(3, 4, 1), y = f32(3, 4, 2);
  const auto binary = [](Tensor p, Tensor q, Tensor r) {
    return check(BinaryArgs{p, q, r, BinaryKind::add});
  };
  expect({
      {check(UnaryArgs{a, a}), ""},
      {check(UnaryArgs{a, f32(4, 3, 1)}),
       "unary: x [3, 4] and y [4, 3] do not agree: both must have the same shape"},
      {check(UnaryArgs{a, f32_matrix(pool + 1, 3, 4)}),
       "unary: y [3, 4] and x [3, 4] share memory: the result needs its own"},
      {binary(a, b, y), ""},
      {binary(a, b, b), ""},
      {binary(a, a, a), ""},
      {binary(a, f32_vec(4, 1), y), ""},
      {binary(a, f32(3, 1, 1), y), ""},
      {binary(a, f32_vec(3, 1), y),
       "binary: a [3, 4] and b [3] do not agree: b must have a's shape, be one row or column of "
       "it, or one value"},
      {binary(a, f32(2, 4, 1), y),
       "binary: a [3, 4] and b [2, 4] do not agree: b must have a's shape, be one row or column "
       "of it, or one value"},
      {binary(a, f32(1, 1, 1), y), ""},
      {binary(a, f32(3, 1, 2), y),
       "binary: y [3, 4] and b [3, 1] share memory: the result needs its own"},
      {binary(a, f32_vec(4, 2), y),
       "binary: y [3, 4] and b [4] share memory: the result needs its own"},
      {binary(a, b, f32(3, 3, 2)),
       "binary: a [3, 4] and y [3, 3] do not agree: both must have the same shape"},
      {check(GatedArgs{a, b, y}), ""},
      {check(GatedArgs{a, b, b}), ""},
      {check(GatedArgs{a, f32(3, 5, 1), y}),
       "gated: gate [3, 4] and up [3, 5] do not agree: both must have the same shape"},
      {check(GatedArgs{a, b, f32(2, 4, 2)}),
       "gated: gate [3, 4] and y [2, 4] do not agree: both must have the same shape"},
      {check(FillArgs{y, 1.0f}), ""},
      {check(FillArgs{r16(3, 4), 1.0f}), "fill: y [3, 4] is packed q8_0: it must be plain float32"},
  });
}

TEST(Checks, ColumnSlicesOfOneMatrixAreApart) {
  const Tensor left = strided(f32_matrix(pool, 5, 4), 10);
  const Tensor right = strided(f32_matrix(pool + 4, 5, 6), 10);
  const Tensor crossing = strided(f32_matrix(pool + 3, 5, 4), 10);
  const Tensor wrapping = strided(f32_matrix(pool + 8, 5, 4), 10);
  expect({
      {check(UnaryArgs{left, strided(f32_matrix(pool + 4, 5, 4), 10)}), ""},
      {matmul(right, r16(4, 6), Tensor{}, left), ""},
      {check(UnaryArgs{left, crossing}),
       "unary: y [5, 4] and x [5, 4] share memory: the result needs its own"},
      {check(UnaryArgs{left, wrapping}),
       "unary: y [5, 4] and x [5, 4] share memory: the result needs its own"},
      {matmul(f32_matrix(pool, 5, 4), r16(6, 4), Tensor{}, right),
       "matmul: y [5, 6] and x [5, 4] share memory: the result needs its own"},
  });
}

TEST(Checks, RowOps) {
  const Tensor x = f32(3, 4);
  expect({
      {check(SoftmaxArgs{x, f32(3, 4, 1)}), ""},
      {check(SoftmaxArgs{x, f32(3, 5, 1)}),
       "softmax: x [3, 4] and y [3, 5] do not agree: both must have the same shape"},
      {check(ReduceArgs{x, f32_vec(3, 1)}), ""},
      {check(ReduceArgs{x, f32(3, 1, 1)}), ""},
      {check(ReduceArgs{x, f32_vec(4, 1)}), "reduce: y [4] has 4 values: it must have 3"},
      {check(ReduceArgs{x, strided(f32(3, 1, 1), 2)}),
       "reduce: y [3, 1] has gaps: its row stride is 2"},
      {check(ReduceArgs{x, f32_vec(3)}),
       "reduce: y [3] and x [3, 4] share memory: the result needs its own"},
      {check(ArgmaxArgs{x, i32(1, 3)}), ""},
      {check(ArgmaxArgs{x, i32(1, 2)}), "argmax: ids [1, 2] has 2 values: it must have 3"},
      {check(ArgmaxArgs{f32(3, 0), i32(1, 3)}), "argmax: x [3, 0] has empty rows"},
      {check(TopkArgs{x, f32(3, 2, 1), i32(3, 2)}), ""},
      {check(TopkArgs{x, f32(3, 5, 1), i32(3, 5)}),
       "topk: x [3, 4] and values [3, 5] do not agree: as many rows, and not more values than a "
       "row of x has"},
      {check(TopkArgs{x, f32(2, 2, 1), i32(2, 2)}),
       "topk: x [3, 4] and values [2, 2] do not agree: as many rows, and not more values than a "
       "row of x has"},
      {check(TopkArgs{x, f32(3, 2, 1), i32(3, 1)}),
       "topk: values [3, 2] and ids [3, 1] do not agree: both must have the same shape"},
  });
}

TEST(Checks, Draw) {
  const Tensor values = f32(3, 4), ids = i32(3, 4);
  Tensor next = i32(1, 3);
  next.data += 64 * 4;
  const auto draw = [&](float temperature, float top_p, float min_p) {
    return check(SampleArgs{values, ids, next, temperature, top_p, min_p});
  };
  expect({
      {draw(1.0f, 1.0f, 0.0f), ""},
      {draw(1.2e-38f, 1e-40f, 1.0f), ""},
      {draw(0.0f, 1.0f, 0.0f),
       "sample: temperature is 0: it must be at least 1.1754944e-38 and finite"},
      {draw(NAN, 1.0f, 0.0f),
       "sample: temperature is nan: it must be at least 1.1754944e-38 and finite"},
      {draw(1.0f, 0.0f, 0.0f), "sample: top_p is 0: it must be in (0, 1]"},
      {draw(1.0f, 1.5f, 0.0f), "sample: top_p is 1.5: it must be in (0, 1]"},
      {draw(1.0f, 1.0f, -0.5f), "sample: min_p is -0.5: it must be in [0, 1]"},
      {draw(1.0f, 1.0f, NAN), "sample: min_p is nan: it must be in [0, 1]"},
      {check(SampleArgs{f32(1, 256), i32(1, 256), no_memory(next)}),
       "sample: next [1, 3] has no memory"},
      {check(SampleArgs{f32(1, 257), i32(1, 257), i32(1, 1)}),
       "sample: values [1, 257] has 257 candidates in a row: it must have 1 to 256"},
      {check(SampleArgs{f32(3, 0), i32(3, 0), next}),
       "sample: values [3, 0] has 0 candidates in a row: it must have 1 to 256"},
      {check(SampleArgs{values, i32(3, 3), next}),
       "sample: values [3, 4] and ids [3, 3] do not agree: both must have the same shape"},
      {check(SampleArgs{values, ids, i32(1, 2)}),
       "sample: next [1, 2] has 2 values: it must have 3"},
      {check(SampleArgs{values, values, next}),
       "sample: ids [3, 4] is plain float32: it must be plain int32"},
      {check(SampleArgs{values, ids, i32(1, 3)}),
       "sample: next [1, 3] and ids [3, 4] share memory: the result needs its own"},
  });
}

TEST(Checks, Convert) {
  const Tensor x = f32(3, 4);
  expect({
      {check(ConvertArgs{r16(3, 4), x}), ""},
      {check(ConvertArgs{x, of_dtype(f32(3, 4, 1), DType::bf16)}), ""},
      {check(ConvertArgs{r16(3, 4), of_dtype(x, DType::f16)}),
       "convert: y [3, 4] is plain float16: it must be plain float32"},
      {check(ConvertArgs{x, of_dtype(f32(3, 4, 1), DType::i8)}),
       "convert: x is float32 and y is int8: plain rows are converted between float types of 16 "
       "bits or more only"},
      {check(ConvertArgs{x, r16(3, 4)}),
       "convert: x is float32 and y is q8_0: plain rows are converted between float types of 16 "
       "bits or more only"},
      {check(ConvertArgs{x, f32(4, 3, 1)}),
       "convert: x [3, 4] and y [4, 3] do not agree: both must have the same shape"},
      {check(ConvertArgs{x, of_dtype(x, DType::f16)}),
       "convert: y [3, 4] and x [3, 4] share memory: the result needs its own"},
  });
}

}  // namespace
}  // namespace loom::core
