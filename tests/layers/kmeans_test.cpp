// KMeans with centres in eight bits: its probabilities are those of the packed centres, and uniform
// only if all centres are equal.
#include "base/threads/thread_pool.hpp"
#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kClusters = 4, kFeatures = 3, kSamples = 3;
constexpr double kHeat = 0.7;

// Probabilities [rows, clusters] of a KMeans layer whose centres are packed in `dtype`.
std::vector<float> kmeans_of(const std::vector<float>& centres, DType dtype, std::vector<float> x) {
  ThreadPool pool(1, true);
  GridSpec grid(1, 1, 1, 1);
  EXPECT_TRUE(grid.put({0, 0, 0, 0}, {layer(LayerKind::kmeans, {{"clusters", kClusters},
                                                                {"width", kFeatures},
                                                                {"temperature", kHeat}}),
                                      {}})
                  .ok());
  Result<Network> network = Network::finalize(grid, Shape{kSamples, kFeatures});
  EXPECT_TRUE(network.ok());
  const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
    std::copy_n(centres.begin() + first * kFeatures, count * kFeatures, out);
    return {};
  };
  EXPECT_TRUE(network->load_param(0, dtype, rows, pool).ok());
  Result<Session> session =
      Session::create(*network, cpu_ops(best_isa()), pool, Shape{kSamples, kFeatures}, {});
  EXPECT_TRUE(session.ok());
  Tensor t;
  t.shape = Shape{kSamples, kFeatures};
  t.row_stride = kFeatures;
  t.data = reinterpret_cast<std::byte*>(x.data());
  const Result<Tensor> y = session->forward(t, 0, 1);
  EXPECT_TRUE(y.ok());
  return {y->f32(), y->f32() + kSamples * kClusters};
}

TEST(KMeansInEightBits, IsThatOfTheFloatCentresUpToTheirRounding) {
  const std::vector<float> centres = random_values(kClusters * kFeatures, 3),
                           x = random_values(kSamples * kFeatures, 4);
  const std::vector<float> got = kmeans_of(centres, DType::i8, x);
  for (size_t r = 0; r < kSamples; ++r) {
    double sum = 0, p[kClusters];
    for (size_t k = 0; k < kClusters; ++k) {
      double square = 0;
      for (size_t i = 0; i < kFeatures; ++i) {
        const double d = static_cast<double>(x[r * kFeatures + i]) -
                         static_cast<double>(centres[k * kFeatures + i]);
        square += d * d;
      }
      p[k] = std::exp(-square / (2 * kHeat * kHeat));
      sum += p[k];
    }
    for (size_t k = 0; k < kClusters; ++k)
      EXPECT_NEAR(static_cast<double>(got[r * kClusters + k]), p[k] / sum, 0.02) << r << " " << k;
  }
}

TEST(KMeansInEightBits, IsUniformOnlyWhereAllCentresAreEqual) {
  const auto spread = [](const std::vector<float>& y) {
    float most = 0;
    for (const float v : y) most = std::max(most, std::fabs(v - 1.0f / kClusters));
    return most;
  };
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<float> x = random_values(kSamples * kFeatures, 100 + seed);
    std::vector<float> centres = random_values(kClusters * kFeatures, 200 + seed);
    EXPECT_GT(spread(kmeans_of(centres, DType::i8, x)), 1e-3f) << seed;
    for (size_t k = 1; k < kClusters; ++k)
      std::copy_n(centres.begin(), kFeatures,
                  centres.begin() + static_cast<ptrdiff_t>(k * kFeatures));
    EXPECT_LT(spread(kmeans_of(centres, DType::i8, x)), 1e-6f) << seed;
  }
}

}  // namespace
}  // namespace loom::core::test
