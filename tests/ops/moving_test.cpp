// The strided copy: its definition, the moves of layers, its refusals, and its gradient.
#include <numeric>

#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "ops/check_testing.hpp"
#include "ops/f64.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/random_copy.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
namespace {

using test::Draws;
using test::each_element;
using test::F64;
using test::random_copy;
using test::run64;

using Values = std::vector<double>;

// y after a copy of 0, 1, 2, ..; unwritten values are -1.
Values moved(const std::function<CopyArgs(const Tensor& x, const Tensor& y)>& move, int64_t from,
             int64_t to) {
  const F64 x(1, from), y(1, to);
  for (int64_t i = 0; i < from; ++i) x[i] = static_cast<double>(i);
  for (int64_t i = 0; i < to; ++i) y[i] = -1;
  const CopyArgs args = move(x.tensor(), y.tensor());
  EXPECT_TRUE(check(args).ok()) << check(args).error().str();
  run64(&Ops::copy, args);
  return {&y[0], &y[0] + to};
}

TEST(Moves, APermutedArrayHasItsAxesInTheNewOrder) {
  const int64_t extents[] = {2, 3};
  const int axes[] = {1, 0};
  EXPECT_EQ(
      moved([&](const Tensor& x, const Tensor& y) { return permute(x, extents, axes, y); }, 6, 6),
      (Values{0, 3, 1, 4, 2, 5}));
}

TEST(Moves, ASliceTakesEveryNthElementFromItsStart) {
  const int64_t full[] = {2, 5}, start[] = {0, 1}, by[] = {1, 2}, part[] = {2, 2};
  EXPECT_EQ(
      moved([&](const Tensor& x, const Tensor& y) { return slice(x, full, start, by, y, part); },
            10, 4),
      (Values{1, 3, 6, 8}));
}

TEST(Moves, ASliceWithANegativeStepTurnsAnAxisRound) {
  const int64_t full[] = {2, 3}, start[] = {0, 2}, by[] = {1, -1}, part[] = {2, 3};
  EXPECT_EQ(
      moved([&](const Tensor& x, const Tensor& y) { return slice(x, full, start, by, y, part); }, 6,
            6),
      (Values{2, 1, 0, 5, 4, 3}));
}

TEST(Moves, AnExpandedAxisRepeatsItsElement) {
  const int64_t from[] = {2, 1}, to[] = {2, 3};
  EXPECT_EQ(moved([&](const Tensor& x, const Tensor& y) { return expand(x, from, y, to); }, 2, 6),
            (Values{0, 0, 0, 1, 1, 1}));
}

TEST(Moves, APlacedArrayLeavesTheRestAsItWas) {
  const int64_t part[] = {1, 2}, full[] = {2, 4}, start[] = {1, 1};
  EXPECT_EQ(
      moved([&](const Tensor& x, const Tensor& y) { return copy_into(x, part, y, full, start); }, 2,
            8),
      (Values{-1, -1, -1, -1, -1, 0, 1, -1}));
}

TEST(Moves, AnAxisThatIsSplitCanBePermuted) {
  const int axes[] = {1, 0};
  const auto shuffle = [&](const Tensor& x, const Tensor& y) {
    return move(x, Walk(Shape{6}).split(0, 2).permuted(axes), y, Walk(Shape{2, 3}));
  };
  EXPECT_EQ(moved(shuffle, 6, 6), (Values{0, 2, 4, 1, 3, 5}));
}

TEST(Moves, AxesThatLieBehindEachOtherBecomeOne) {
  const F64 x(1, 120), y(1, 120);
  const Walk all(Shape{2, 3, 4, 5});
  EXPECT_EQ(move(x.tensor(), all, y.tensor(), all).rank, 1);
  const int axes[] = {0, 3, 1, 2};
  EXPECT_EQ(move(x.tensor(), all.permuted(axes), y.tensor(), Walk(Shape{2, 5, 3, 4})).rank, 3);
  const Walk reversed = all.flipped(0).flipped(1).flipped(2).flipped(3);
  EXPECT_EQ(move(x.tensor(), reversed, y.tensor(), all).rank, 1);
}

TEST(Copy, WritesWhatItsStepsNameAndNothingElse) {
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    CopyArgs args = random_copy(seed, 200, true, DType::f64);
    const F64 x = F64::random(1, args.x.shape.count(), seed), y(1, args.y.shape.count());
    const F64 expected(1, y.size());
    for (int64_t i = 0; i < y.size(); ++i) y[i] = expected[i] = -7;
    args.x = x.tensor();
    args.y = y.tensor();
    ASSERT_TRUE(check(args).ok()) << seed << ": " << check(args).error().str();
    each_element(args, [&](int64_t from, int64_t to) { expected[to] = x[from]; });
    for (const CopyArgs& same : {args, merged(args)}) {
      run64(&Ops::copy, same);
      for (int64_t i = 0; i < y.size(); ++i)
        ASSERT_EQ(y[i], expected[i]) << seed << ", value " << i;
    }
  }
}

CopyArgs of_floats(const Tensor& x, const Tensor& y, std::initializer_list<int64_t> extent,
                   std::initializer_list<int64_t> x_step, std::initializer_list<int64_t> y_step) {
  CopyArgs args;
  args.x = x;
  args.y = y;
  args.rank = static_cast<int>(extent.size());
  std::copy(extent.begin(), extent.end(), args.extent);
  std::copy(x_step.begin(), x_step.end(), args.x_step);
  std::copy(y_step.begin(), y_step.end(), args.y_step);
  args.whole = false;
  return args;
}

TEST(Copy, RefusesWhatLiesOutsideCrossesOrIsNotWhole) {
  const Tensor x = test::f32(3, 4), y = test::f32(3, 4, 1);
  const auto of = [&](auto... lists) { return of_floats(x, y, lists...); };
  using L = std::initializer_list<int64_t>;
  CopyArgs part = of(L{4}, L{1}, L{1});
  part.whole = true;
  CopyArgs below = of(L{4}, L{-1}, L{1});
  below.x_first = 2;
  CopyArgs large = of(L{4}, L{1}, L{1});
  large.rank = 7;
  test::expect({
      {check(of(L{3, 4}, L{4, 1}, L{4, 1})), ""},
      {check(of(L{0, 4}, L{4, 1}, L{400, 1})), ""},
      {check(of(L{3, 4}, L{0, 1}, L{1, 3})), ""},
      {check(of(L{4, 4}, L{4, 1}, L{1, 3})),
       "copy: elements 0 to 15 of x [3, 4] are named: it has 12"},
      {check(below), "copy: elements -1 to 2 of x [3, 4] are named: it has 12"},
      {check(of(L{3, 4}, L{4, 1}, L{4, 2})),
       "copy: elements 0 to 14 of y [3, 4] are named: it has 12"},
      {check(of(L{3, 4}, L{4, 1}, L{0, 1})),
       "copy: its steps name an element of y [3, 4] twice, or axes of y cross: each step must be "
       "beyond what the smaller ones reach"},
      {check(of(L{3, 2}, L{4, 1}, L{2, 3})),
       "copy: its steps name an element of y [3, 4] twice, or axes of y cross: each step must be "
       "beyond what the smaller ones reach"},
      {check(part), "copy: it moves 4 values, and y [3, 4] is to be written whole"},
      {check(large), "copy: it has 7 axes: from 0 to 6 are possible"},
      {check(of(L{-1}, L{1}, L{1})),
       "copy: axis 0 has extent -1 and steps 1 and 1: extents below 2^30, none negative, and steps "
       "below 2^40 are possible"},
      {check(of_floats(x, x, L{4}, L{1}, L{1})),
       "copy: y [3, 4] and x [3, 4] share memory: the result needs its own"},
      {check(of_floats(test::strided(x, 5), y, L{4}, L{1}, L{1})),
       "copy: x [3, 4] has gaps: its row stride is 5"},
      {check(of_floats(test::i32(3, 4), y, L{4}, L{1}, L{1})),
       "copy: y [3, 4] is plain float32: it must be plain int32"},
      {check(of_floats(test::of_dtype(x, DType::f64), y, L{4}, L{1}, L{1})),
       "copy: y [3, 4] is plain float32: it must be plain float64"},
  });
}

// A recording of one copy and of its gradient; dx when y has gradient dy. With `twice` x is also
// read by another op, whose gradient is 2.
struct Adjoint {
  static Result<Values> run(CopyArgs args, const Values& dy, bool twice) {
    Trace trace(DType::f64, true);
    Recorder recorder(trace);
    Tensor x = trace.fresh(Shape{args.x.shape.count()});
    Tensor y = trace.fresh(Shape{args.y.shape.count()});
    Tensor z = trace.fresh(x.shape), seeded = trace.fresh(y.shape), other = trace.fresh(x.shape);
    args.x = x, args.y = y;
    LOOM_TRY(recorder.fill({x, 1.0f}));
    if (!args.whole) LOOM_TRY(recorder.fill({y, 0.0f}));
    LOOM_TRY(recorder.copy(args));
    if (twice) LOOM_TRY(recorder.binary({x, x, z, BinaryKind::add}));
    Differentiator d(trace);
    d.want(x);
    d.seed(y, seeded);
    if (twice) d.seed(z, other);
    LOOM_TRY(d.run());
    Tensor dx = d.gradient(x);
    ThreadPool pool(2);
    std::vector<Tensor*> pins = {&dx, &seeded};
    if (twice) pins.push_back(&other);
    LOOM_ASSIGN(Program program,
                Program::compile(std::move(trace), pins, reference_ops_f64(), pool));
    std::copy(dy.begin(), dy.end(), seeded.values<double>());
    if (twice) std::fill_n(other.values<double>(), other.shape.count(), 1.0);
    LOOM_TRY(program.run());
    return Values(dx.values<double>(), dx.values<double>() + dx.shape.count());
  }
};

TEST(Copy, SendsEachGradientBackToWhereTheValueCameFromAndSumsThoseOfABroadcast) {
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    const CopyArgs args = random_copy(seed, 150, seed % 2 == 0, DType::f64);
    const F64 random = F64::random(1, args.y.shape.count(), seed);
    const Values dy(&random[0], &random[0] + random.size());
    const bool twice = seed % 3 == 0;
    Values expected(static_cast<size_t>(args.x.shape.count()), twice ? 2.0 : 0.0);
    each_element(args, [&](int64_t from, int64_t to) {
      expected[static_cast<size_t>(from)] += dy[static_cast<size_t>(to)];
    });
    const Result<Values> dx = Adjoint::run(args, dy, twice);
    ASSERT_TRUE(dx.ok()) << seed << ": " << dx.error().str();
    ASSERT_EQ(dx->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR((*dx)[i], expected[i], 1e-12) << seed << ", value " << i;
    }
  }
}

TEST(Copy, HasNoGradientWhereAxesOfXCross) {
  const Tensor x{DType::f64, Layout::plain, Shape{5}, 5, nullptr};
  const Tensor y{DType::f64, Layout::plain, Shape{9}, 9, nullptr};
  CopyArgs windows = of_floats(x, y, {3, 3}, {1, 1}, {3, 1});
  windows.whole = true;
  const Result<Values> dx = Adjoint::run(windows, Values(9, 1.0), false);
  ASSERT_FALSE(dx.ok());
  EXPECT_EQ(dx.error().message,
            "gradient of copy: it reads elements of x through axes that cross, which have no "
            "gradient rule; copy the parts one by one");
}

}  // namespace
}  // namespace loom::core
