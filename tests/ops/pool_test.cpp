// Pooling: against sums over coordinates; rules for NaN, equal values and windows; refusals; and
// its gradient against central differences.
#include <limits>

#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "ops/check_testing.hpp"
#include "ops/f64.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/random_pool.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
namespace {

using test::expect_close;
using test::expect_gradient;
using test::F64;
using test::gradient_of;
using test::random_pool;
using test::run64;

// The values of a channel inside of a window, and the number of counted positions.
struct Seen {
  std::vector<double> values;
  int64_t counted = 0;
};

Seen look(const PoolArgs& args, const double* x, const int64_t (&o)[3]) {
  const ConvShape& s = args.shape;
  Seen seen;
  int64_t i[3];
  const auto in_window = [&](int a) {
    if (args.windows == PoolWindows::adaptive) {
      const double scale = static_cast<double>(s.in[a]) / static_cast<double>(s.out[a]);
      return i[a] >= std::floor(static_cast<double>(o[a]) * scale + 1e-9) &&
             i[a] < std::ceil(static_cast<double>(o[a] + 1) * scale - 1e-9);
    }
    const int64_t from = i[a] - (o[a] * s.stride[a] - s.pad[a]);
    return from >= 0 && from % s.dilation[a] == 0 && from / s.dilation[a] < s.kernel[a];
  };
  const auto inside = [&](int a) { return i[a] >= 0 && i[a] < s.in[a]; };
  for (i[0] = -s.pad[0]; i[0] < s.in[0] + args.pad_end[0]; ++i[0]) {
    for (i[1] = -s.pad[1]; i[1] < s.in[1] + args.pad_end[1]; ++i[1]) {
      for (i[2] = -s.pad[2]; i[2] < s.in[2] + args.pad_end[2]; ++i[2]) {
        if (!in_window(0) || !in_window(1) || !in_window(2)) continue;
        const bool real = inside(0) && inside(1) && inside(2);
        if (real || args.include_pad) ++seen.counted;
        if (real) seen.values.push_back(x[(i[0] * s.in[1] + i[1]) * s.in[2] + i[2]]);
      }
    }
  }
  return seen;
}

double naive(const PoolArgs& args, const Seen& seen) {
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  for (const double v : seen.values) {
    most = std::max(most, v);
    sum += args.kind == PoolKind::average ? v : args.p == 1 ? std::abs(v) : v * v;
  }
  if (args.kind == PoolKind::max) return most;
  if (args.kind == PoolKind::lp) return args.p == 1 ? sum : std::sqrt(sum);
  return seen.counted == 0 ? 0 : sum / static_cast<double>(seen.counted);
}

TEST(Pool, IsTheNaiveReductionOfEveryWindow) {
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    PoolArgs args = random_pool(seed, 14);
    const ConvShape& s = args.shape;
    const F64 x = F64::random(2, s.channels * s.in_positions(), seed, 1);
    const F64 y(2, s.channels * s.out_positions(), 2);
    args.x = x.tensor();
    args.y = y.tensor();
    ASSERT_TRUE(check(args).ok()) << check(args).error().str();
    run64(&Ops::pool, args);
    for (int64_t b = 0; b < 2; ++b) {
      int64_t at = 0, o[3];
      for (int64_t c = 0; c < s.channels; ++c) {
        const double* channel = x.tensor().row<double>(b) + c * s.in_positions();
        for (o[0] = 0; o[0] < s.out[0]; ++o[0]) {
          for (o[1] = 0; o[1] < s.out[1]; ++o[1]) {
            for (o[2] = 0; o[2] < s.out[2]; ++o[2]) {
              const double want = naive(args, look(args, channel, o));
              if (std::isinf(want)) {
                ASSERT_EQ(y.at(b, at++), want) << seed;
              } else {
                expect_close(cat("pool ", seed), y.at(b, at++), want);
              }
            }
          }
        }
      }
    }
    if (testing::Test::HasFailure()) return;
  }
}

// Pooling of one row with windows of three, two apart.
struct Row {
  explicit Row(std::vector<double> values)
      : x(1, static_cast<int64_t>(values.size())),
        y(1, (x.cols() - 1) / 2),
        ids(static_cast<size_t>(y.cols())) {
    for (int64_t i = 0; i < x.cols(); ++i) x[i] = values[static_cast<size_t>(i)];
    args.shape.in[2] = x.cols();
    args.shape.out[2] = y.cols();
    args.shape.kernel[2] = 3;
    args.shape.stride[2] = 2;
    args.x = x.tensor();
    args.y = y.tensor();
    args.ids = Tensor{DType::i32, Layout::plain, Shape{1, y.cols()}, y.cols(),
                      reinterpret_cast<std::byte*>(ids.data())};
    run64(&Ops::pool, args);
  }
  F64 x, y;
  std::vector<int32_t> ids;
  PoolArgs args;
};

TEST(Pool, TheFirstOfEqualValuesIsTheLargest) {
  const Row row({1, 3, 3, 3, 2});
  EXPECT_EQ(row.ids, (std::vector<int32_t>{1, 2}));
}

TEST(Pool, ANaNIsLargerThanAnyNumberAndTheLastOneWins) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Row row({nan, 9, nan, 7, 1});
  EXPECT_TRUE(std::isnan(row.y[0]));
  EXPECT_TRUE(std::isnan(row.y[1]));
  EXPECT_EQ(row.ids, (std::vector<int32_t>{2, 2}));
}

TEST(Pool, AWindowOfNegativeInfinitiesNamesItsFirstValue) {
  const double low = -std::numeric_limits<double>::infinity();
  const Row row({low, low, low});
  EXPECT_EQ(row.y[0], low);
  EXPECT_EQ(row.ids, (std::vector<int32_t>{0}));
}

TEST(Pool, RefusesWhatIsNoPooling) {
  PoolArgs args;
  args.shape.channels = args.shape.filters = args.shape.groups = 2;
  args.shape.in[2] = 6;
  args.shape.out[2] = 3;
  args.shape.kernel[2] = args.shape.stride[2] = 2;
  args.x = test::f32(3, 12);
  args.y = test::f32(3, 6, 1);
  const auto but = [&](auto change) {
    PoolArgs changed = args;
    change(changed);
    return check(changed);
  };
  test::expect({
      {check(args), ""},
      {but([](PoolArgs& a) { a.ids = test::i32(3, 6); }), ""},
      {but([](PoolArgs& a) { a.shape.stride[2] = 0; }),
       "pool: a number of its shape is out of range: positive, extents and padding not negative, "
       "all and the positions of a channel below 2^31"},
      {but([](PoolArgs& a) { a.shape.groups = 1; }),
       "pool: 2 channels, 2 filters and 1 groups: all three must be the number of channels"},
      {but([](PoolArgs& a) { a.kind = PoolKind::lp, a.p = 3; }), "pool: p is 3: it must be 1 or 2"},
      {but([](PoolArgs& a) { a.x = test::f32(3, 10); }),
       "pool: x [3, 10] must have 3 rows of 2 channels of 6 values"},
      {but([](PoolArgs& a) { a.y = test::f32(2, 6, 1); }),
       "pool: y [2, 6] must have 3 rows of 2 channels of 3 values"},
      {but([](PoolArgs& a) { a.kind = PoolKind::average, a.ids = test::i32(3, 6); }),
       "pool: only the largest values have ids"},
      {but([](PoolArgs& a) { a.ids = test::i32(3, 5); }),
       "pool: ids [3, 5] must have 3 rows of 2 channels of 3 values"},
      {but([](PoolArgs& a) { a.y = test::f32(3, 6); }),
       "pool: y [3, 6] and x [3, 12] share memory: the result needs its own"},
  });
}

// dx from a recording, with ids of the forward pass or without.
Result<std::vector<double>> recorded_gradient(PoolArgs args, const F64& x, const F64& dy,
                                              bool with_ids) {
  Trace trace(DType::f64, true);
  Recorder recorder(trace);
  Tensor tx = trace.fresh(x.tensor().shape), ty = trace.fresh(dy.tensor().shape);
  Tensor seeded = trace.fresh(ty.shape);
  args.x = tx, args.y = ty;
  if (with_ids) args.ids = trace.fresh(ty.shape, DType::i32);
  LOOM_TRY(recorder.pool(args));
  Differentiator d(trace);
  d.want(tx);
  d.seed(ty, seeded);
  LOOM_TRY(d.run());
  Tensor dx = d.gradient(tx);
  ThreadPool pool(1);
  std::vector<Tensor*> pins = {&tx, &seeded, &dx};
  LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, reference_ops_f64(), pool));
  std::copy_n(&x[0], x.size(), tx.values<double>());
  std::copy_n(&dy[0], dy.size(), seeded.values<double>());
  LOOM_TRY(program.run());
  return std::vector<double>(dx.values<double>(), dx.values<double>() + x.size());
}

TEST(Pool, HasTheGradientOfCentralDifferences) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    PoolArgs args = random_pool(seed, 7);
    const ConvShape& s = args.shape;
    const F64 x = F64::random(2, s.channels * s.in_positions(), seed + 40);
    const F64 y(2, s.channels * s.out_positions()), dy = F64::random(2, y.cols(), seed + 80);
    if (y.size() == 0) continue;
    const Result<std::vector<double>> got = recorded_gradient(args, x, dy, seed % 2 == 0);
    const bool ids = args.kind == PoolKind::max && seed % 2 == 0;
    if (!ids && seed % 2 == 0) {
      EXPECT_FALSE(got.ok());  // only the largest values have ids
      continue;
    }
    ASSERT_TRUE(got.ok()) << got.error().str();
    const F64 dx(2, x.cols());
    std::copy(got->begin(), got->end(), &dx[0]);
    args.x = x.tensor();
    args.y = y.tensor();
    expect_gradient(cat("pool ", seed), x, dx, [&] {
      run64(&Ops::pool, args);
      double sum = 0;
      // A window without a value is -inf for any x.
      for (int64_t i = 0; i < y.size(); ++i) sum += std::isinf(y[i]) ? 0 : y[i] * dy[i];
      return sum;
    });
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Pool, ANormOfZerosHasNoGradient) {
  const F64 x(1, 3), dy(1, 1);
  dy[0] = 1;
  PoolArgs args;
  args.kind = PoolKind::lp;
  args.shape.in[2] = args.shape.kernel[2] = 3;
  for (const int p : {1, 2}) {
    args.p = p;
    const Result<std::vector<double>> dx = recorded_gradient(args, x, dy, false);
    ASSERT_TRUE(dx.ok()) << dx.error().str();
    EXPECT_EQ(*dx, (std::vector<double>{0, 0, 0}));
  }
}

}  // namespace
}  // namespace loom::core
