// Spectral norm during training. The directions are those of power iteration in doubles, as in
// PyTorch. Their norm is the largest that a matrix gives a vector of length 1.
#include <gtest/gtest.h>

#include <cmath>

#include "base/numbers/rng.hpp"
#include "layers/blocks/blocks.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test::spectral {
namespace {

using Vector = std::vector<double>;

Vector values_of(const Network& network, std::string_view name) {
  for (const Param& p : network.params()) {
    if (p.spec.name != name) continue;
    return {p.tensor.f32(), p.tensor.f32() + p.spec.shape.count()};
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

double shorten(Vector& v, double eps) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  const double length = std::max(std::sqrt(squares), eps);
  for (double& x : v) x /= length;
  return length;
}

// w v, w being [v'.size(), v.size()] in memory; transposed: w^T v.
Vector product(const Vector& w, const Vector& v, bool transposed) {
  const size_t cols = transposed ? w.size() / v.size() : v.size(), rows = w.size() / cols;
  Vector out(transposed ? cols : rows);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c)
      out[transposed ? c : r] += w[r * cols + c] * v[transposed ? r : c];
  }
  return out;
}

class SpectralNorm : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, SpectralNorm, ::testing::Range(1, 25));

TEST_P(SpectralNorm, FollowsPowerIterationInTrainingAndStandsStillOutside) {
  const Rng rng(static_cast<uint64_t>(GetParam()), 51);
  const auto from = [&](uint64_t i, int64_t least, int64_t most) {
    return least + static_cast<int64_t>(rng.bits(i) % static_cast<uint64_t>(most - least + 1));
  };
  const int64_t in = from(0, 1, 9), out = from(1, 1, 9), iterations = from(2, 1, 4);
  const GridSpec grid = row_of({*make_layer(
      *find_layer("SpectralNormDense"), {{"in", in}, {"out", out}, {"iterations", iterations}})});
  TrainStepOptions options;
  options.loss.kind = Loss::mse;
  TrainRig rig(grid, Shape{4, in}, DType::f32, options);
  ASSERT_TRUE(rig.ready());
  const Vector w = values_of(rig.network(), "value");
  Vector u = values_of(rig.network(), "u"), v = values_of(rig.network(), "v");
  for (int step = 0; step < 3; ++step) {
    (void)rig.run(1, 0.0);
    for (int64_t i = 0; i < iterations; ++i) {
      u = product(w, v, false);
      shorten(u, 1e-12);
      v = product(w, u, true);
      shorten(v, 1e-12);
    }
    const Vector got_u = values_of(rig.network(), "u"), got_v = values_of(rig.network(), "v");
    for (size_t i = 0; i < u.size(); ++i) ASSERT_NEAR(got_u[i], u[i], 2e-5) << step;
    for (size_t i = 0; i < v.size(); ++i) ASSERT_NEAR(got_v[i], v[i], 2e-5) << step;
  }
  // The prediction of the step: x W^T / s + b.
  double s = 0;
  const Vector wv = product(w, v, false);
  for (size_t i = 0; i < u.size(); ++i) s += u[i] * wv[i];
  const Tensor &x = rig.step().x(), &y = rig.step().y();
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      double want = 0;
      for (int64_t i = 0; i < in; ++i)
        want += static_cast<double>(x.f32_row(r)[i]) * w[static_cast<size_t>(o * in + i)] / s;
      ASSERT_NEAR(static_cast<double>(y.f32_row(r)[o]), want, 1e-4 * (1 + std::fabs(want)));
    }
  }
}

TEST_P(SpectralNorm, FindsTheLargestLengthThatTheMatrixGives) {
  const int64_t in = 2 + GetParam() % 6, out = 1 + GetParam() % 5;
  const GridSpec grid = row_of({*make_layer(*find_layer("SpectralNormDense"),
                                            {{"in", in}, {"out", out}, {"iterations", 500}})});
  TrainStepOptions options;
  options.loss.kind = Loss::mse;
  TrainRig rig(grid, Shape{2, in}, DType::f32, options);
  ASSERT_TRUE(rig.ready());
  (void)rig.run(1, 0.0);
  const Vector w = values_of(rig.network(), "value"), v = values_of(rig.network(), "v");
  Vector along = product(w, v, false);
  const double s = shorten(along, 0);
  const Rng rng(static_cast<uint64_t>(GetParam()), 52);
  for (uint64_t i = 0; i < 2000; ++i) {
    Vector x;
    for (int64_t k = 0; k < in; ++k)
      x.push_back(2.0 * static_cast<double>(rng.uniform(i * 16 + static_cast<uint64_t>(k))) - 1);
    shorten(x, 1e-12);
    Vector y = product(w, x, false);
    EXPECT_LE(shorten(y, 0), s * (1 + 1e-5));
  }
}

}  // namespace
}  // namespace loom::core::test::spectral
