// The reference itself against independent results: naive formulas in double with error bounds, and
// sums for which only the order of docs/numerics.md gives the expected value.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "ops/random_program.hpp"

namespace loom::core {
namespace {

using test::bytes;
using test::floats;

constexpr double kUnit = 0x1p-24;  // half an ulp of 1

std::vector<float> random(uint64_t seed, int64_t n) {
  const Rng rng(seed, 9);
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = rng.uniform(i) * 2.0f - 1.0f;
  return values;
}

template <class Args>
void run(void (*Ops::*op)(const Args&, const Lane&), const Args& args) {
  std::vector<std::byte> scratch(1 << 16);
  (reference_ops().*op)(args, Lane{0, 1, scratch.data(), 1 << 16});
}

Tensor matrix(std::vector<float>& values, int64_t rows, int64_t cols) {
  return f32_matrix(values.data(), rows, cols);
}

// ---- the order of sums ----

float dot(std::vector<float> x) {
  const auto k = static_cast<int64_t>(x.size());
  Buffer memory = bytes(r16_geometry(DType::f32, 1, k).bytes());
  const std::vector<float> ones(x.size(), 1.0f);
  r16_pack(r16_geometry(DType::f32, 1, k), ones.data(), 0, 1, ScaleScope::per_row, TensorRange{},
           memory.data());
  float y = -1;
  MatmulArgs args;
  args.x = matrix(x, 1, k);
  args.w = r16_tensor(r16_geometry(DType::f32, 1, k), memory.data());
  args.y = f32_matrix(&y, 1, 1);
  run(&Ops::matmul, args);
  return y;
}

// n zeros with some values set.
std::vector<float> sparse(size_t n, std::initializer_list<std::pair<size_t, float>> values) {
  std::vector<float> x(n, 0.0f);
  for (const auto& [at, value] : values) x[at] = value;
  return x;
}

TEST(RuleTwo, ChunksOf256AreSummedOnTheirOwnAndThenInOrder) {
  EXPECT_EQ(dot({}), 0.0f);
  EXPECT_FALSE(std::signbit(dot({}))) << "an empty sum is +0";
  EXPECT_FALSE(std::signbit(dot({-0.0f}))) << "a chain starts from +0";
  // 1 is lost next to 1e8 within a chain, and kept if 1e8 was cancelled before.
  EXPECT_EQ(dot(sparse(256, {{0, 1e8f}, {1, 1.0f}, {2, -1e8f}})), 0.0f);
  EXPECT_EQ(dot(sparse(256, {{0, 1e8f}, {1, -1e8f}, {2, 1.0f}})), 1.0f);
  EXPECT_EQ(dot(sparse(257, {{0, 1e8f}, {1, -1e8f}, {256, 1.0f}})), 1.0f);
  EXPECT_EQ(dot(sparse(257, {{0, 1e8f}, {254, 1.0f}, {256, -1e8f}})), 0.0f);
  // The second chunk is summed separately before it is added to the first.
  EXPECT_EQ(dot(sparse(512, {{0, 1e8f}, {256, 4.0f}, {257, 4.0f}})), 100000008.0f);
  EXPECT_EQ(dot(sparse(512, {{0, 1e8f}, {255, 4.0f}, {256, 4.0f}})), 100000000.0f);
}

float reduced(std::vector<float> x, ReduceKind kind = ReduceKind::sum) {
  float y = -1;
  run(&Ops::reduce,
      ReduceArgs{matrix(x, 1, static_cast<int64_t>(x.size())), f32_vector(&y, 1), kind});
  return y;
}

TEST(RuleFour, LanesOf32AreFoldedAndBlocksOf4096Follow) {
  EXPECT_EQ(reduced({}), 0.0f);
  EXPECT_EQ(reduced({}, ReduceKind::max), -std::numeric_limits<float>::infinity());
  // Same lane (32 apart): lost. Lanes 0 and 16 meet in the first fold, before lane 1 joins.
  EXPECT_EQ(reduced(sparse(64, {{0, 1e8f}, {32, 1.0f}, {16, -1e8f}})), 0.0f);
  EXPECT_EQ(reduced(sparse(64, {{0, 1e8f}, {33, 1.0f}, {16, -1e8f}})), 1.0f);
  // Lanes 0 and 8 meet in the second fold: 16 is too early, 4 and 1 are too late to be lost.
  EXPECT_EQ(reduced(sparse(32, {{0, 1e8f}, {16, 1.0f}, {8, -1e8f}})), 0.0f);
  EXPECT_EQ(reduced(sparse(32, {{0, 1e8f}, {4, 1.0f}, {8, -1e8f}})), 1.0f);
  EXPECT_EQ(reduced(sparse(32, {{0, 1e8f}, {24, 1.0f}, {8, -1e8f}})), 0.0f);
  // A second block is folded on its own.
  EXPECT_EQ(reduced(sparse(8192, {{0, 1e8f}, {4096, 4.0f}, {4097, 4.0f}})), 100000008.0f);
  EXPECT_EQ(reduced(sparse(4096, {{0, 1e8f}, {32, 4.0f}, {64, 4.0f}})), 100000000.0f);
}

// ---- matmul ----

struct Product {
  int64_t rows, n, k;
};

// The magnitude that rounding errors scale with: both parts of level * step + offset.
double magnitude(const R16& g, const std::byte* data, int64_t row, int64_t k, double value) {
  const DTypeInfo& info = dtype_info(g.dtype);
  if (!info.shifted()) return std::fabs(value);
  const double level = r16_level(g, data, row, k);
  return std::fabs(level * static_cast<double>(r16_step(g, data, row, k / info.block))) +
         std::fabs(static_cast<double>(r16_offset(g, data, row, k / info.block)));
}

void expect_product(DType dtype, const Product& p, bool use_q8) {
  std::vector<float> x = random(1, p.rows * p.k), bias = random(2, p.n),
                     y(static_cast<size_t>(p.rows * p.n));
  const test::Weights w(dtype, p.n, p.k, 3);
  const R16 g = r16_geometry(dtype, p.n, p.k);
  const int64_t blocks = (p.k + 31) / 32;
  std::vector<int8_t> codes(static_cast<size_t>(p.rows * blocks * 32));
  std::vector<float> scales(static_cast<size_t>(p.rows * blocks));
  std::vector<int32_t> sums(scales.size()), half_sums(scales.size());
  MatmulArgs args;
  args.x = matrix(x, p.rows, p.k), args.w = w.tensor, args.bias = f32_vector(bias.data(), p.n);
  args.y = matrix(y, p.rows, p.n);
  args.q8 = Q8Rows{codes.data(), scales.data(), sums.data(), half_sums.data(), p.rows, p.k, blocks};
  args.use_q8 = use_q8;
  run(&Ops::quantize_rows, QuantizeRowsArgs{args.x, args.q8});
  run(&Ops::matmul, args);
  const bool in_double = dtype_info(dtype).compute == ComputeType::f64;
  const double depth = in_double ? 2
                                 : (use_q8 ? static_cast<double>(2 * blocks + 6)
                                           : static_cast<double>(std::min<int64_t>(p.k, 260) + 6));
  for (int64_t n = 0; n < p.n; ++n) {
    std::vector<double> row(static_cast<size_t>(p.k));
    r16_decode_f64(g, w.tensor.data, n, 0, p.k, row.data());
    for (int64_t r = 0; r < p.rows; ++r) {
      double sum = static_cast<double>(bias[static_cast<size_t>(n)]), size = std::fabs(sum);
      for (int64_t k = 0; k < p.k; ++k) {
        const double a =
            use_q8 ? static_cast<double>(codes[static_cast<size_t>(r * blocks * 32 + k)]) *
                         static_cast<double>(scales[static_cast<size_t>(r * blocks + k / 32)])
                   : static_cast<double>(x[static_cast<size_t>(r * p.k + k)]);
        sum += a * row[static_cast<size_t>(k)];
        size += std::fabs(a) * magnitude(g, w.tensor.data, n, k, row[static_cast<size_t>(k)]);
      }
      const double got = static_cast<double>(y[static_cast<size_t>(r * p.n + n)]);
      const double bound =
          in_double
              ? depth * kUnit *
                    (std::fabs(sum) + std::fabs(static_cast<double>(bias[static_cast<size_t>(n)])) +
                     1e-9 * size)
              : depth * kUnit * size;
      ASSERT_NEAR(got, sum, bound)
          << dtype_name(dtype) << (use_q8 ? " q8 " : " ") << r << ", " << n;
    }
  }
}

TEST(ReferenceMatmul, IsTheProductOfTheDecodedWeights) {
  for (const DTypeInfo& info : dtype_table()) {
    for (const Product& p : {Product{2, 3, 5}, Product{3, 17, 300}, Product{1, 16, 32}}) {
      expect_product(info.dtype, p, false);
      if (info.integer_path()) expect_product(info.dtype, p, true);
    }
  }
}

TEST(ReferenceMatmul, WithoutColumnsIsActivationOfBias) {
  std::vector<float> bias = {-1.0f, 2.0f}, y(4, 7.0f);
  Buffer memory = bytes(64);
  MatmulArgs args;
  args.x = f32_matrix(nullptr, 2, 0);
  args.w = r16_tensor(r16_geometry(DType::q8_0, 2, 0), memory.data());
  args.bias = f32_vector(bias.data(), 2);
  args.y = matrix(y, 2, 2);
  args.activation = Activation::relu;
  run(&Ops::matmul, args);
  EXPECT_EQ(y, (std::vector<float>{0.0f, 2.0f, 0.0f, 2.0f}));
}

// ---- q8 ----

struct Block {
  int8_t codes[32];
  float scale;
  int32_t sum, half_sum;
};

Block quantized(std::vector<float> x) {
  Block b;
  const auto n = static_cast<int64_t>(x.size());
  run(&Ops::quantize_rows,
      QuantizeRowsArgs{matrix(x, 1, n), Q8Rows{b.codes, &b.scale, &b.sum, &b.half_sum, 1, n, 1}});
  return b;
}

TEST(ReferenceQuantize, CodesAreNearestToTheValues) {
  const std::vector<float> x = random(5, 32);
  const Block b = quantized(x);
  float absmax = 0;
  for (float v : x) absmax = std::max(absmax, std::fabs(v));
  EXPECT_EQ(b.scale, absmax / 127.0f);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_NEAR(static_cast<double>(b.codes[i]) * static_cast<double>(b.scale),
                static_cast<double>(x[i]), static_cast<double>(b.scale) * 0.50001);
  }
  EXPECT_EQ(b.sum, std::accumulate(b.codes, b.codes + 32, 0));
  EXPECT_EQ(b.half_sum, std::accumulate(b.codes, b.codes + 16, 0));
}

TEST(ReferenceQuantize, ShortAndStrangeBlocks) {
  const Block one = quantized({-3.0f});
  EXPECT_EQ(one.codes[0], -127);
  EXPECT_EQ(one.sum, -127);
  for (int i = 1; i < 32; ++i) EXPECT_EQ(one.codes[i], 0) << "padding";
  const Block zeros = quantized({0.0f, -0.0f});
  EXPECT_EQ(zeros.scale, 0.0f);
  EXPECT_EQ(zeros.sum, 0);
  const Block ties = quantized({127.0f, 0.5f, 1.5f, -2.5f});
  EXPECT_EQ(ties.codes[1], 0);
  EXPECT_EQ(ties.codes[2], 2);
  EXPECT_EQ(ties.codes[3], -2);
  const Block tiny = quantized({1e-40f, -1e-41f});
  EXPECT_EQ(tiny.scale, 0.0f) << "127 / absmax overflows";
  EXPECT_EQ(tiny.codes[0], 0);
  const Block infinite = quantized({1.0f, -INFINITY, 2.0f});
  EXPECT_EQ(infinite.scale, INFINITY);
  EXPECT_EQ(infinite.sum, 0);
  const Block nan = quantized({1.0f, NAN, INFINITY});
  EXPECT_NE(nan.scale, nan.scale);
  EXPECT_EQ(nan.sum, 0);
}

// ---- rows ----

void expect_norm(NormKind kind, int64_t cols, int64_t segments, bool per_row) {
  const int64_t n = cols / segments;
  std::vector<float> x = random(6, cols), y(x.size());
  std::vector<float> gamma = random(7, per_row ? cols : n), beta = random(8, per_row ? cols : n);
  NormArgs args;
  args.x = matrix(x, 1, cols), args.y = matrix(y, 1, cols), args.kind = kind,
  args.segments = segments;
  args.gamma = f32_vector(gamma.data(), per_row ? cols : n);
  if (kind == NormKind::layer) args.beta = f32_vector(beta.data(), per_row ? cols : n);
  run(&Ops::norm, args);
  for (int64_t s = 0; s < segments; ++s) {
    double mean = 0, spread = 0;
    for (int64_t i = 0; i < n; ++i)
      mean += static_cast<double>(x[static_cast<size_t>(s * n + i)]) / static_cast<double>(n);
    if (kind == NormKind::rms) mean = 0;
    for (int64_t i = 0; i < n; ++i) {
      spread += std::pow(static_cast<double>(x[static_cast<size_t>(s * n + i)]) - mean, 2) /
                static_cast<double>(n);
    }
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(s * n + i),
                 p = static_cast<size_t>(per_row ? s * n + i : i);
      double truth =
          (static_cast<double>(x[at]) - mean) / std::sqrt(spread + static_cast<double>(args.eps));
      truth = truth * static_cast<double>(gamma[p]) +
              (kind == NormKind::layer ? static_cast<double>(beta[p]) : 0.0);
      ASSERT_NEAR(static_cast<double>(y[at]), truth, 3e-6)
          << cols << "/" << segments << " at " << i;
    }
  }
}

TEST(ReferenceNorm, MatchesTheFormulas) {
  for (NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (int64_t cols : {3, 32, 33, 5000}) expect_norm(kind, cols, 1, false);
    for (bool per_row : {false, true}) expect_norm(kind, 96, 3, per_row);
  }
}

TEST(ReferenceSoftmax, MatchesTheFormulaAndSumsToOne) {
  for (int64_t cols : {1, 2, 33, 5000}) {
    std::vector<float> x = random(9, cols), y(x.size());
    run(&Ops::softmax, SoftmaxArgs{matrix(x, 1, cols), matrix(y, 1, cols), 3.0f});
    double sum = 0, total = 0;
    for (float v : x) sum += std::exp(3.0 * static_cast<double>(v));
    for (size_t i = 0; i < x.size(); ++i) {
      const double truth = std::exp(3.0 * static_cast<double>(x[i])) / sum;
      ASSERT_NEAR(static_cast<double>(y[i]), truth, 2e-6 * truth) << cols << " at " << i;
      total += static_cast<double>(y[i]);
    }
    EXPECT_NEAR(total, 1.0, 1e-6);
  }
}

TEST(ReferenceSoftmax, MaskedValuesGetNothing) {
  std::vector<float> x = {-INFINITY, 1.0f, -INFINITY, 1.0f}, y(4);
  run(&Ops::softmax, SoftmaxArgs{matrix(x, 1, 4), matrix(y, 1, 4)});
  EXPECT_EQ(y, (std::vector<float>{0.0f, 0.5f, 0.0f, 0.5f}));
  x.assign(4, -INFINITY);
  run(&Ops::softmax, SoftmaxArgs{matrix(x, 1, 4), matrix(y, 1, 4)});
  EXPECT_EQ(y, (std::vector<float>(4, 0.0f))) << "a row that is masked throughout";
  x = {500.0f, 300.0f, -1e30f, 500.0f};
  run(&Ops::softmax, SoftmaxArgs{matrix(x, 1, 4), matrix(y, 1, 4)});
  EXPECT_EQ(y, (std::vector<float>{0.5f, 0.0f, 0.0f, 0.5f})) << "large values do not overflow";
}

TEST(ReferenceReduce, MatchesTheFormulas) {
  for (int64_t cols : {1, 31, 33, 5000}) {
    const std::vector<float> x = random(10, cols);
    double sum = 0, squares = 0;
    float largest = -INFINITY;
    for (float v : x) {
      sum += static_cast<double>(v);
      squares += static_cast<double>(v) * static_cast<double>(v);
      largest = std::max(largest, v);
    }
    EXPECT_NEAR(static_cast<double>(reduced(x)), sum, 1e-4);
    EXPECT_NEAR(static_cast<double>(reduced(x, ReduceKind::mean)), sum / static_cast<double>(cols),
                1e-6);
    EXPECT_NEAR(static_cast<double>(reduced(x, ReduceKind::sum_squares)), squares, squares * 1e-6);
    EXPECT_EQ(reduced(x, ReduceKind::max), largest);
  }
}

// ---- selection ----

TEST(ReferenceSelect, OrdersByValueThenIndexWithNanLast) {
  struct Case {
    std::vector<float> x;
    std::vector<int32_t> order;
  };
  const Case cases[] = {
      {{3, 1, 2}, {0, 2, 1}},
      {{1, 1, 1}, {0, 1, 2}},
      {{-0.0f, 0.0f, -1}, {0, 1, 2}},
      {{NAN, -INFINITY, 5}, {2, 1, 0}},
      {{NAN, NAN, 1, NAN}, {2, 0, 1, 3}},
      {{INFINITY, 1, INFINITY}, {0, 2, 1}},
  };
  for (Case c : cases) {
    const auto n = static_cast<int64_t>(c.x.size());
    std::vector<int32_t> ids(c.x.size() + 1);
    std::vector<float> values(c.x.size());
    const auto id_tensor = [&](int64_t count) {
      return Tensor{DType::i32, Layout::plain, Shape{1, count}, count,
                    reinterpret_cast<std::byte*>(ids.data())};
    };
    run(&Ops::argmax, ArgmaxArgs{matrix(c.x, 1, n), id_tensor(1)});
    EXPECT_EQ(ids[0], c.order[0]);
    run(&Ops::topk, TopkArgs{matrix(c.x, 1, n), matrix(values, 1, n), id_tensor(n)});
    ids.pop_back();
    EXPECT_EQ(ids, c.order);
  }
}

// ---- conversion ----

TEST(ReferenceConvert, RoundsOnceToNearestEven) {
  std::vector<double> from = {1.0 + 0x1p-24, 1.0 + 0x1p-24 + 0x1p-50, -0.0, 1e-310, 1e300, 0.1};
  std::vector<float> to(from.size());
  const auto n = static_cast<int64_t>(from.size());
  const Tensor x{DType::f64, Layout::plain, Shape{1, n}, n,
                 reinterpret_cast<std::byte*>(from.data())};
  run(&Ops::convert, ConvertArgs{x, matrix(to, 1, n)});
  for (size_t i = 0; i < from.size(); ++i) EXPECT_EQ(to[i], static_cast<float>(from[i])) << from[i];
  // 1 + 2^-11 + 2^-40 is above the tie of f16. Through f32 it would become the tie and round down.
  from = {1.0 + 0x1p-11 + 0x1p-40};
  uint16_t half = 0;
  const Tensor one{DType::f64, Layout::plain, Shape{1, 1}, 1,
                   reinterpret_cast<std::byte*>(from.data())};
  run(&Ops::convert, ConvertArgs{one, Tensor{DType::f16, Layout::plain, Shape{1, 1}, 1,
                                             reinterpret_cast<std::byte*>(&half)}});
  EXPECT_EQ(half, 0x3c01);
}

}  // namespace
}  // namespace loom::core
