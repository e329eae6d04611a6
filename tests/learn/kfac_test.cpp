// K-FAC: inverses, one step of a random Dense network in doubles, and that it needs fewer steps.
#include <algorithm>
#include <random>

#include "base/text.hpp"
#include "learn/optimizer/kfac.hpp"
#include "learn/rule_oracle.hpp"

namespace loom::core::test {
namespace {

TEST(Kfac, InvertsPositiveDefiniteMatrices) {
  std::mt19937 draw(1);
  std::normal_distribution<double> normal;
  for (const int64_t n : {1, 2, 3, 7, 33}) {
    std::vector<float> values(static_cast<size_t>(n * n)), inverse(values.size(), 9.0f);
    std::vector<double> root(values.size());
    for (double& v : root) v = normal(draw);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k)
          sum += root[static_cast<size_t>(i * n + k)] * root[static_cast<size_t>(j * n + k)];
        values[static_cast<size_t>(i * n + j)] = static_cast<float>(sum);
      }
    }
    std::vector<double> work;
    const Tensor from = f32_matrix(values.data(), n, n), to = f32_matrix(inverse.data(), n, n);
    ASSERT_TRUE(invert_shifted(from, 0.5, work, to));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) {
          const double a = static_cast<double>(values[static_cast<size_t>(i * n + k)]);
          sum += (a + (i == k ? 0.5 : 0.0)) *
                 static_cast<double>(inverse[static_cast<size_t>(k * n + j)]);
        }
        EXPECT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-4) << n;
      }
    }
  }
}

TEST(Kfac, KeepsTheOldInverseOfAMatrixThatIsNotPositiveDefinite) {
  float values[] = {1, 2, 2, 1}, inverse[] = {5, 6, 7, 8};
  std::vector<double> work;
  EXPECT_FALSE(invert_shifted(f32_matrix(values, 2, 2), 0.0, work, f32_matrix(inverse, 2, 2)));
  EXPECT_EQ(inverse[0], 5.0f);
  EXPECT_EQ(inverse[3], 8.0f);
}

TrainStepOptions kfac_options(Loss loss) {
  TrainStepOptions o;
  o.loss.kind = loss;
  o.class_ids = loss == Loss::cross_entropy;
  o.optimizer.kind = *parse_optimizer("kfac");
  return o;
}

const Tensor& state_tensor(TrainRig& rig, const std::string& name) {
  for (const StateTensor& p : rig.step().state()) {
    if (p.name == name) return p.tensor;
  }
  static const Tensor none;
  ADD_FAILURE() << name << " is not there";
  return none;
}

// If the targets of a loss cannot be drawn, the factors are those of the real gradients. Then a
// whole step of one layer follows from its input and output.
TEST(Kfac, StepsOneLayerAsItsFormulasSay) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937 draw(static_cast<unsigned>(seed));
    const auto in = static_cast<size_t>(1 + draw() % 6), out = static_cast<size_t>(1 + draw() % 5);
    const auto n = static_cast<size_t>(2 + draw() % 7);
    RuleCase c;
    c.widths = {static_cast<int64_t>(in), static_cast<int64_t>(out)};
    TrainStepOptions o = kfac_options(Loss::huber);
    o.optimizer.trust = draw() % 2 == 0 ? 0.0f : 1e-3f;
    TrainRig rig(c.grid(), Shape{static_cast<int64_t>(n), c.widths[0]}, DType::f32, o);
    ASSERT_TRUE(rig.ready());
    const std::string at = "(0, 0, 0, 0)/";
    const Grid2 w = grid_of(state_tensor(rig, at + "weight"), out, in);
    const Grid2 b = grid_of(state_tensor(rig, at + "bias"), 1, out);
    const Grid2 x = grid_of(rig.step().x(), n, in);
    const Grid2 t = grid_of(rig.step().target(), n, out);
    constexpr double kRate = 0.5;
    rig.run(1, kRate);

    const size_t side = in + 1;  // the bias is the last column
    Grid2 g = empty_grid(n, out), a_factor = empty_grid(side, side);
    Grid2 g_factor = empty_grid(out, out), dw = empty_grid(out, side);
    for (size_t r = 0; r < n; ++r) {
      const double weight = static_cast<double>(rig.step().weight().f32()[r]);
      for (size_t i = 0; i < out; ++i) {
        double y = b[0][i];
        for (size_t k = 0; k < in; ++k) y += w[i][k] * x[r][k];
        g[r][i] = weight * std::clamp(y - t[r][i], -1.0, 1.0) / static_cast<double>(out);
        for (size_t k = 0; k < side; ++k) dw[i][k] += g[r][i] * (k < in ? x[r][k] : 1.0);
      }
    }
    const auto count = static_cast<double>(n);
    for (size_t r = 0; r < n; ++r) {
      for (size_t i = 0; i < side; ++i)
        for (size_t k = 0; k < side; ++k)
          a_factor[i][k] += (i < in ? x[r][i] : 1.0) * (k < in ? x[r][k] : 1.0) / count;
      for (size_t i = 0; i < out; ++i)
        for (size_t k = 0; k < out; ++k) g_factor[i][k] += count * g[r][i] * g[r][k];
    }
    EXPECT_LT(farthest(a_factor, grid_of(state_tensor(rig, at + "weight/kfac/in"), side, side)),
              1e-5);
    EXPECT_LT(farthest(g_factor, grid_of(state_tensor(rig, at + "weight/kfac/out"), out, out)),
              1e-5);
    // The inverses are looked at by what they make of the factors; the step by them.
    const Grid2 a_inverse = grid_of(state_tensor(rig, at + "weight/kfac/in_inverse"), side, side);
    const Grid2 g_inverse = grid_of(state_tensor(rig, at + "weight/kfac/out_inverse"), out, out);
    const auto mean_diagonal = [](const Grid2& m) {
      double sum = 0;
      for (size_t i = 0; i < m.size(); ++i) sum += m[i][i];
      return sum / static_cast<double>(m.size());
    };
    const double pi = std::sqrt(mean_diagonal(a_factor) / mean_diagonal(g_factor));
    for (size_t i = 0; i < side; ++i) a_factor[i][i] += 0.1 * pi;
    for (size_t i = 0; i < out; ++i) g_factor[i][i] += 0.1 / pi;
    const Grid2 ones = multiplied(a_factor, a_inverse), others = multiplied(g_factor, g_inverse);
    for (size_t i = 0; i < side; ++i) EXPECT_NEAR(ones[i][i], 1.0, 1e-3) << seed;
    for (size_t i = 0; i < out; ++i) EXPECT_NEAR(others[i][i], 1.0, 1e-3) << seed;
    const Grid2 direction = multiplied(multiplied(g_inverse, dw), a_inverse);
    double change = 0;
    for (size_t i = 0; i < out; ++i) {
      for (size_t k = 0; k < side; ++k) change += direction[i][k] * dw[i][k];
    }
    const double trust = static_cast<double>(*o.optimizer.trust);
    const double nu =
        trust > 0 ? std::min(1.0, std::sqrt(trust / std::max(kRate * kRate * change, 1e-30))) : 1.0;
    Grid2 expected = w;
    for (size_t i = 0; i < out; ++i)
      for (size_t k = 0; k < in; ++k) expected[i][k] -= kRate * nu * direction[i][k];
    EXPECT_LT(farthest(expected, grid_of(state_tensor(rig, at + "weight"), out, in)), 1e-4) << seed;
    Grid2 bias = b;
    for (size_t i = 0; i < out; ++i) bias[0][i] -= kRate * nu * direction[i][in];
    EXPECT_LT(farthest(bias, grid_of(state_tensor(rig, at + "bias"), 1, out)), 1e-4) << seed;
  }
}

GridSpec kfac_picture_net() {
  return row_of({layer(LayerKind::cnn2, {{"channels", 1},
                                         {"filters", 4},
                                         {"stride", 2},
                                         {"padding", 1},
                                         {"activation", "tanh"}}),
                 layer(LayerKind::cnn2, {{"channels", 4}, {"filters", 3}, {"activation", "tanh"}}),
                 layer(LayerKind::dense, {{"in", 12}, {"out", 4}})});
}

TEST(Kfac, NeedsFewerStepsThanAdamOnAConvolutionNet) {
  TrainStepOptions adam = kfac_options(Loss::cross_entropy);
  adam.optimizer.kind = *parse_optimizer("adam");
  TrainRig one(kfac_picture_net(), Shape{6, 1, 8, 8}, DType::f32, adam);
  TrainRig two(kfac_picture_net(), Shape{6, 1, 8, 8}, DType::f32,
               kfac_options(Loss::cross_entropy));
  ASSERT_TRUE(one.ready() && two.ready());
  const double reached = one.run(80, 0.01).back();
  EXPECT_LT(two.run(40, 0.1).back(), reached);
}

TEST(Kfac, GivesEqualBitsOverThreadsAndInstructionSets) {
  std::optional<uint64_t> first;
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2, 3, 7}) {
      TrainRig rig(kfac_picture_net(), Shape{6, 1, 8, 8}, DType::i8,
                   kfac_options(Loss::cross_entropy), cpu_ops(isa), threads, DType::i8);
      ASSERT_TRUE(rig.ready());
      rig.run(12, 0.05);
      if (!first) first = rig.hash();
      EXPECT_EQ(rig.hash(), *first) << isa_name(isa) << " " << threads;
    }
  }
}

TEST(Kfac, GoesOnFromItsStateWithTheSameBits) {
  const TrainStepOptions o = kfac_options(Loss::cross_entropy);
  TrainRig full(kfac_picture_net(), Shape{6, 1, 8, 8}, DType::f32, o);
  TrainRig half(kfac_picture_net(), Shape{6, 1, 8, 8}, DType::f32, o);
  TrainRig rest(kfac_picture_net(), Shape{6, 1, 8, 8}, DType::f32, o);
  ASSERT_TRUE(full.ready() && half.ready() && rest.ready());
  full.run(17, 0.05);
  half.run(8, 0.05);
  ASSERT_EQ(half.step().state().size(), rest.step().state().size());
  for (size_t i = 0; i < half.step().state().size(); ++i) {
    const Tensor& from = half.step().state()[i].tensor;
    std::copy_n(from.f32(), from.shape.count(), rest.step().state()[i].tensor.f32());
  }
  ASSERT_TRUE(rest.step().restored(8).ok());
  rest.run(9, 0.05);
  EXPECT_EQ(rest.hash(), full.hash());
}

TEST(Kfac, RefusesWhatItCannotDo) {
  const LayerConfig norm = layer(LayerKind::layer_norm, {{"width", 4}});
  const LayerConfig dense = layer(LayerKind::dense, {{"in", 4}, {"out", 4}});
  const struct {
    GridSpec grid;
    std::function<void(TrainStepOptions&)> change;
    std::string says;
  } cases[] = {
      {row_of({norm}), [](TrainStepOptions&) {}, "finds no product"},
      {row_of({dense}), [](TrainStepOptions& o) { o.native = true; }, "native"},
      {row_of({dense}), [](TrainStepOptions& o) { o.optimizer.damping = 0; }, "damping"},
      {row_of({dense}), [](TrainStepOptions& o) { o.optimizer.inverse_every = 0; }, "every 0"},
  };
  ThreadPool pool(1, true);
  for (const auto& one : cases) {
    SCOPED_TRACE(one.says);
    Result<Network> network = Network::finalize(one.grid, Shape{2, 4});
    ASSERT_TRUE(network.ok());
    ASSERT_TRUE(init_params(*network, DType::f32, 7, pool).ok());
    TrainStepOptions o = kfac_options(Loss::mse);
    one.change(o);
    const Result<TrainStep> step = TrainStep::create(*network, o, cpu_ops(best_isa()), pool);
    ASSERT_FALSE(step.ok());
    EXPECT_NE(step.error().message.find(one.says), std::string::npos) << step.error().message;
  }
}

}  // namespace
}  // namespace loom::core::test
