// Blocks whose weights have a norm of their own, beside their formulas in doubles.
#include "layers/block_rig.hpp"

namespace loom::core::test::block_formulas {
namespace {

class NormedWeights : public ::testing::TestWithParam<int> {
 protected:
  Choice choose{static_cast<uint64_t>(GetParam()) + 1};
};
INSTANTIATE_TEST_SUITE_P(Random, NormedWeights, ::testing::Range(0, 25));

TEST_P(NormedWeights, WeightNormDenseHasRowsOfTheLengthsThatWereLearned) {
  const int64_t b = choose.from(1, 4), in = choose.from(1, 6), out = choose.from(1, 6);
  Rig rig(block("WeightNormDense", {{"in", in}, {"out", out}, {"activation", "tanh"}}),
          Shape{b, in});
  const std::vector<float> x = random_values(b * in, 5);
  Values w = rig.weight(0);
  for (int64_t o = 0; o < out; ++o) {
    double squares = 0;
    for (int64_t i = 0; i < in; ++i)
      squares += w[static_cast<size_t>(o * in + i)] * w[static_cast<size_t>(o * in + i)];
    for (int64_t i = 0; i < in; ++i)
      w[static_cast<size_t>(o * in + i)] *=
          rig.weight(1)[static_cast<size_t>(o)] / std::sqrt(squares);
  }
  Values want = dense(doubles(x), w, rig.weight(2), in, out);
  for (double& v : want) v = std::tanh(v);
  expect_near(rig.run(x), want);
}

// W / s, s being u . W v for u and v brought to length 1.
Values divided(Values w, Values u, Values v) {
  const auto shorten = [](Values& t) {
    double squares = 0;
    for (const double value : t) squares += value * value;
    for (double& value : t) value /= std::sqrt(squares);
  };
  shorten(u);
  shorten(v);
  double s = 0;
  for (size_t r = 0; r < u.size(); ++r) {
    for (size_t c = 0; c < v.size(); ++c) s += u[r] * w[r * v.size() + c] * v[c];
  }
  for (double& value : w) value /= s;
  return w;
}

TEST_P(NormedWeights, SpectralNormDenseDividesByWhatItsDirectionsSee) {
  const int64_t b = choose.from(1, 4), in = choose.from(1, 6), out = choose.from(1, 6);
  Rig rig(block("SpectralNormDense", {{"in", in}, {"out", out}, {"activation", "tanh"}}),
          Shape{b, in});
  const std::vector<float> x = random_values(b * in, 5);
  const Values w = divided(rig.weight(0), rig.weight(1), rig.weight(2));
  Values want = dense(doubles(x), w, rig.weight(3), in, out);
  for (double& v : want) v = std::tanh(v);
  expect_near(rig.run(x), want);
}

// A convolution over [b, c, n, m], written out.
struct Plane {
  int64_t b, c, f, n, m, k, stride, pad, dilation;
  int64_t out(int64_t extent) const {
    return (extent + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
  }
  Values of(const std::vector<float>& x, const Values& w, const Values& bias) const {
    Values y;
    for (int64_t s = 0; s < b; ++s) {
      for (int64_t o = 0; o < f; ++o) {
        for (int64_t i = 0; i < out(n); ++i) {
          for (int64_t j = 0; j < out(m); ++j)
            y.push_back(bias[static_cast<size_t>(o)] + sum(x, w, s, o, i, j));
        }
      }
    }
    return y;
  }
  double sum(const std::vector<float>& x, const Values& w, int64_t s, int64_t o, int64_t i,
             int64_t j) const {
    double all = 0;
    for (int64_t ch = 0; ch < c; ++ch) {
      for (int64_t tap = 0; tap < k * k; ++tap) {
        const int64_t row = i * stride + tap / k * dilation - pad;
        const int64_t col = j * stride + tap % k * dilation - pad;
        if (row < 0 || row >= n || col < 0 || col >= m) continue;
        all += x[static_cast<size_t>(((s * c + ch) * n + row) * m + col)] *
               w[static_cast<size_t>((o * c + ch) * k * k + tap)];
      }
    }
    return all;
  }
};

TEST_P(NormedWeights, ConvolutionsOfNormedWeightsAreThoseOfTheirFilters) {
  const Plane p{choose.from(1, 2), choose.from(1, 3), choose.from(1, 3),
                choose.from(5, 8), choose.from(5, 8), choose.from(1, 3),
                choose.from(1, 2), choose.from(0, 2), choose.from(1, 2)};
  const bool spectral = choose.yes();
  Rig rig(block(spectral ? "SpectralNormConv" : "WeightNormConv", {{"channels", p.c},
                                                                   {"filters", p.f},
                                                                   {"kernel", p.k},
                                                                   {"stride", p.stride},
                                                                   {"padding", p.pad},
                                                                   {"dilation", p.dilation}}),
          Shape{p.b, p.c, p.n, p.m});
  const std::vector<float> x = random_values(p.b * p.c * p.n * p.m, 5);
  if (spectral) {
    const Values w = divided(rig.weight(0), rig.weight(1), rig.weight(2));
    expect_near(rig.run(x), p.of(x, w, rig.weight(3)));
    return;
  }
  Values w = rig.weight(0);
  const auto each = static_cast<size_t>(p.c * p.k * p.k);
  for (size_t o = 0; o < static_cast<size_t>(p.f); ++o) {
    double squares = 0;
    for (size_t i = 0; i < each; ++i) squares += w[o * each + i] * w[o * each + i];
    for (size_t i = 0; i < each; ++i) w[o * each + i] *= rig.weight(1)[o] / std::sqrt(squares);
  }
  expect_near(rig.run(x), p.of(x, w, rig.weight(2)));
}

}  // namespace
}  // namespace loom::core::test::block_formulas
