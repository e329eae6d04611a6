// Packing by weighted squared errors and by GPTQ, for every type of fewer than 16 bits.
#include "dtype/r16/r16_quantize.hpp"

#include <algorithm>

#include "samples.hpp"

namespace loom::core {
namespace {
namespace quantize_tests {

constexpr int64_t kRows = 20, kCols = 300;

class R16Quantize : public testing::TestWithParam<DType> {};
std::vector<DType> narrow_types() {
  std::vector<DType> out;
  for (const DType dtype : test::all_dtypes())
    if (r16_can_quantize(dtype)) out.push_back(dtype);
  return out;
}
INSTANTIATE_TEST_SUITE_P(NarrowTypes, R16Quantize, testing::ValuesIn(narrow_types()),
                         test::dtype_test_name);

struct Packed {
  R16 g;
  std::vector<std::byte> bytes;
  std::vector<double> values() const {
    std::vector<double> out(static_cast<size_t>(g.rows * g.cols));
    for (int64_t r = 0; r < g.rows; ++r)
      r16_decode_f64(g, bytes.data(), r, 0, g.cols, out.data() + r * g.cols);
    return out;
  }
};

Packed quantized(DType dtype, const std::vector<float>& x, const ErrorWeights& weights,
                 int64_t at_once = kRows) {
  Packed p{r16_geometry(dtype, kRows, kCols), {}};
  p.bytes.resize(static_cast<size_t>(p.g.bytes()));
  const TensorRange range = tensor_range(x.data(), kRows * kCols);
  for (int64_t first = 0; first < kRows; first += at_once) {
    r16_quantize(p.g, x.data() + first * kCols, first, std::min(at_once, kRows - first), range,
                 weights, p.bytes.data());
  }
  return p;
}

Packed rounded(DType dtype, const std::vector<float>& x) {
  Packed p{r16_geometry(dtype, kRows, kCols), {}};
  p.bytes.resize(static_cast<size_t>(p.g.bytes()));
  r16_pack(p.g, x.data(), 0, kRows, ScaleScope::per_row, tensor_range(x.data(), kRows * kCols),
           p.bytes.data());
  return p;
}

// sum of d^T H d over the rows, H of inputs that are sums of neighbours.
struct Inputs {
  std::vector<float> moments, importance;
  double cost(const std::vector<float>& x, const std::vector<double>& y) const {
    double sum = 0;
    for (int64_t r = 0; r < kRows; ++r) {
      for (int64_t i = 0; i < kCols; ++i) {
        for (int64_t j = 0; j < kCols; ++j) {
          const auto a = static_cast<size_t>(r * kCols + i), b = static_cast<size_t>(r * kCols + j);
          sum += (static_cast<double>(x[a]) - y[a]) * (static_cast<double>(x[b]) - y[b]) *
                 static_cast<double>(moments[static_cast<size_t>(i * kCols + j)]);
        }
      }
    }
    return sum;
  }
};

// U of inverse(H) = U^T U by the textbook: Gauss-Jordan, then Cholesky.
std::vector<float> textbook_factor(const std::vector<float>& h) {
  const auto n = static_cast<size_t>(kCols);
  std::vector<double> a(h.begin(), h.end()), inverse(n * n);
  for (size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  for (size_t p = 0; p < n; ++p) {
    const double pivot = a[p * n + p];
    for (size_t j = 0; j < n; ++j) a[p * n + j] /= pivot, inverse[p * n + j] /= pivot;
    for (size_t i = 0; i < n; ++i) {
      const double by = a[i * n + p];
      if (i == p || by == 0) continue;
      for (size_t j = 0; j < n; ++j) {
        a[i * n + j] -= by * a[p * n + j];
        inverse[i * n + j] -= by * inverse[p * n + j];
      }
    }
  }
  std::vector<double> u(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i; j < n; ++j) {
      double sum = inverse[i * n + j];
      for (size_t k = 0; k < i; ++k) sum -= u[k * n + i] * u[k * n + j];
      u[i * n + j] = i == j ? std::sqrt(sum) : sum / u[i * n + i];
    }
  }
  return {u.begin(), u.end()};
}

const Inputs& correlated() {
  static const Inputs inputs = [] {
    constexpr int64_t kInputs = 500;
    std::vector<float> noise = test::normal_samples(kInputs * (kCols + 3), 7);
    Inputs in;
    in.moments.resize(kCols * kCols);
    std::vector<double> x(kCols);
    for (int64_t s = 0; s < kInputs; ++s) {
      const float* row = noise.data() + s * (kCols + 3);
      for (int64_t k = 0; k < kCols; ++k) {
        const double strength = k % 17 == 0 ? 6 : 1;
        x[static_cast<size_t>(k)] =
            strength * static_cast<double>(row[k] + row[k + 1] + row[k + 2] + 0.3f * row[k + 3]);
      }
      for (int64_t i = 0; i < kCols * kCols; ++i)
        in.moments[static_cast<size_t>(i)] += static_cast<float>(
            x[static_cast<size_t>(i / kCols)] * x[static_cast<size_t>(i % kCols)] / kInputs);
    }
    for (int64_t k = 0; k < kCols; ++k) {
      float& own = in.moments[static_cast<size_t>(k * kCols + k)];
      in.importance.push_back(own);
      own += 0.05f;
    }
    return in;
  }();
  return inputs;
}

const std::vector<float>& factor() {
  static const std::vector<float> u = textbook_factor(correlated().moments);
  return u;
}

double weighted(const std::vector<float>& x, const std::vector<double>& y,
                const std::vector<float>& importance) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - y[i];
    sum += static_cast<double>(importance[i % kCols]) * d * d;
  }
  return sum;
}

TEST_P(R16Quantize, WeightedErrorsAreAtMostThoseOfRounding) {
  const std::vector<float> x = test::normal_samples(kRows * kCols, 3);
  const std::vector<float>& importance = correlated().importance;
  const double plain = weighted(x, rounded(GetParam(), x).values(), importance);
  ErrorWeights weights;
  weights.importance = importance.data();
  EXPECT_LE(weighted(x, quantized(GetParam(), x, weights).values(), importance), plain * 1.0001);
}

TEST_P(R16Quantize, FeedbackCostsProductsLessThanRounding) {
  const std::vector<float> x = test::normal_samples(kRows * kCols, 4);
  const Inputs& in = correlated();
  const double plain = in.cost(x, rounded(GetParam(), x).values());
  ErrorWeights weights{in.importance.data(), factor().data()};
  EXPECT_LT(in.cost(x, quantized(GetParam(), x, weights).values()), plain * 0.75);
}

TEST_P(R16Quantize, AnyDivisionOfTheRowsGivesTheSameBytes) {
  const std::vector<float> x = test::normal_samples(kRows * kCols, 5);
  ErrorWeights weights{correlated().importance.data(), factor().data()};
  EXPECT_EQ(quantized(GetParam(), x, weights, 16).bytes, quantized(GetParam(), x, weights).bytes);
}

TEST_P(R16Quantize, RowsOfZerosStayZeros) {
  std::vector<float> x(kRows * kCols);
  ErrorWeights weights{correlated().importance.data(), factor().data()};
  for (const double y : quantized(GetParam(), x, weights).values()) EXPECT_EQ(y, 0.0);
}

// The literal search: every step of a fine grid around the plain one.
TEST(R16QuantizeSearch, IsCloseToALiteralSearchOverSteps) {
  const std::vector<float> x = test::normal_samples(kRows * kCols, 6);
  const std::vector<float>& importance = correlated().importance;
  ErrorWeights weights;
  weights.importance = importance.data();
  const double found = weighted(x, quantized(DType::i4, x, weights).values(), importance);
  double literal = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    const float* row = x.data() + r * kCols;
    double largest = 0, best = -1;
    for (int64_t k = 0; k < kCols; ++k)
      largest = std::max(largest, std::fabs(static_cast<double>(row[k])));
    for (double share = 0.3; share < 1.5; share += 0.001) {
      const double step = largest / 7 * share;
      double error = 0;
      for (int64_t k = 0; k < kCols; ++k) {
        const auto v = static_cast<double>(row[k]);
        const double level = std::clamp(std::nearbyint(v / step), -8.0, 7.0);
        error += static_cast<double>(importance[static_cast<size_t>(k)]) * (v - level * step) *
                 (v - level * step);
      }
      best = best < 0 ? error : std::min(best, error);
    }
    literal += best;
  }
  EXPECT_LE(found, literal * 1.02);
}

}  // namespace quantize_tests
}  // namespace
}  // namespace loom::core
