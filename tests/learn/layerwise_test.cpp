// Optimizers that step a parameter as a whole, and what is done to gradients and weights beside the
// optimizer: against the formulas of their sources, in doubles, on random layers and random data.
// Nothing here is shared with the engine but the numbers it began with.
#include <algorithm>
#include <cmath>
#include <random>

#include "learn/optimizer/optimizer.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

// A matrix of doubles, row by row.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> v;
  double& at(int64_t r, int64_t c) { return v[static_cast<size_t>(r * cols + c)]; }
  double at(int64_t r, int64_t c) const { return v[static_cast<size_t>(r * cols + c)]; }
};

Matrix zeros(int64_t rows, int64_t cols) {
  return {rows, cols, std::vector<double>(static_cast<size_t>(rows * cols))};
}
Matrix read(const Tensor& t, int64_t rows, int64_t cols) {
  Matrix m = zeros(rows, cols);
  for (size_t i = 0; i < m.v.size(); ++i) m.v[i] = static_cast<double>(t.f32()[i]);
  return m;
}
Matrix transposed(const Matrix& a) {
  Matrix t = zeros(a.cols, a.rows);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < a.cols; ++c) t.at(c, r) = a.at(r, c);
  return t;
}
Matrix times(const Matrix& a, const Matrix& b) {
  Matrix y = zeros(a.rows, b.cols);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < b.cols; ++c)
      for (int64_t k = 0; k < a.cols; ++k) y.at(r, c) += a.at(r, k) * b.at(k, c);
  return y;
}
Matrix mix(double s, const Matrix& a, double t, const Matrix& b) {
  Matrix y = a;
  for (size_t i = 0; i < y.v.size(); ++i) y.v[i] = s * a.v[i] + t * b.v[i];
  return y;
}
double norm(const Matrix& a) {
  double sum = 0;
  for (const double x : a.v) sum += x * x;
  return std::sqrt(sum);
}

// The trained network: y = x W' + b under the mean squared error of each row times its weight.
struct Linear {
  Matrix x, target, weight, w, b;
  Matrix dw, db;

  void differentiate() {
    dw = zeros(w.rows, w.cols);
    db = zeros(1, b.cols);
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t o = 0; o < w.rows; ++o) {
        double y = b.at(0, o);
        for (int64_t i = 0; i < w.cols; ++i) y += x.at(r, i) * w.at(o, i);
        const double d = 2 * (y - target.at(r, o)) / static_cast<double>(w.rows) * weight.at(0, r);
        db.at(0, o) += d;
        for (int64_t i = 0; i < w.cols; ++i) dw.at(o, i) += d * x.at(r, i);
      }
    }
  }
};

// The formulas of the sources, as their authors and PyTorch write them.
struct Source {
  std::string kind;
  double rate, decay;
  Matrix m, v, rows, cols;

  void step(Matrix& p, const Matrix& g, bool matrix, int t) {
    if (m.v.empty()) m = v = zeros(p.rows, p.cols);
    if (kind == "lamb") return lamb(p, g, t);
    if (kind == "adafactor") return adafactor(p, g, matrix, t);
    return matrix ? muon(p, g) : adamw(p, g, t);
  }
  void averages(const Matrix& g, double b1, double b2) {
    for (size_t i = 0; i < g.v.size(); ++i) {
      m.v[i] = b1 * m.v[i] + (1 - b1) * g.v[i];
      v.v[i] = b2 * v.v[i] + (1 - b2) * g.v[i] * g.v[i];
    }
  }
  // You et al., 2020, algorithm 2, with phi(z) = z.
  void lamb(Matrix& p, const Matrix& g, int t) {
    averages(g, 0.9, 0.999);
    Matrix r = p;
    for (size_t i = 0; i < g.v.size(); ++i) {
      const double up = m.v[i] / (1 - std::pow(0.9, t)), down = v.v[i] / (1 - std::pow(0.999, t));
      r.v[i] = up / (std::sqrt(down) + 1e-6) + decay * p.v[i];
    }
    const double of_p = norm(p), of_r = norm(r);
    p = mix(1, p, -rate * (of_p > 0 && of_r > 0 ? of_p / of_r : 1), r);
  }
  // torch.optim.Adafactor.
  void adafactor(Matrix& p, const Matrix& g, bool matrix, int t) {
    const double moved = std::pow(t, -0.8), count = static_cast<double>(g.v.size());
    const double tiny = std::pow(2, -23);
    const double size = std::max(1e-3, norm(p) / std::sqrt(count));
    const double alpha = size * std::min(rate, 1 / std::sqrt(t));
    for (double& x : p.v) x *= 1 - rate * decay;
    Matrix estimate = g;
    if (matrix) {
      if (rows.v.empty()) rows = zeros(g.rows, 1);
      if (cols.v.empty()) cols = zeros(1, g.cols);
      double mean = 0;
      for (int64_t r = 0; r < g.rows; ++r) {
        double sum = 0;
        for (int64_t c = 0; c < g.cols; ++c) sum += g.at(r, c) * g.at(r, c);
        rows.at(r, 0) += moved * (sum / static_cast<double>(g.cols) - rows.at(r, 0));
        mean += rows.at(r, 0) / static_cast<double>(g.rows);
      }
      for (int64_t c = 0; c < g.cols; ++c) {
        double sum = 0;
        for (int64_t r = 0; r < g.rows; ++r) sum += g.at(r, c) * g.at(r, c);
        cols.at(0, c) += moved * (sum / static_cast<double>(g.rows) - cols.at(0, c));
      }
      estimate = times(rows, cols);
      for (double& x : estimate.v) x /= std::max(mean, tiny);
    } else {
      for (size_t i = 0; i < g.v.size(); ++i) v.v[i] += moved * (g.v[i] * g.v[i] - v.v[i]);
      estimate = v;
    }
    Matrix u = g;
    for (size_t i = 0; i < u.v.size(); ++i)
      u.v[i] /= std::sqrt(std::max(estimate.v[i], tiny * tiny));
    p = mix(1, p, -alpha / std::max(1.0, norm(u) / std::sqrt(count)), u);
  }
  // Jordan et al., 2024, with the factor of Liu et al., 2025.
  void muon(Matrix& p, const Matrix& g) {
    m = mix(0.95, m, 0.05, g);
    Matrix x = mix(0.05, g, 0.95, m);
    const double size = std::max(norm(x), 1e-7);
    for (double& e : x.v) e /= size;
    const bool tall = x.rows > x.cols;
    if (tall) x = transposed(x);
    for (int i = 0; i < 5; ++i) {
      const Matrix a = times(x, transposed(x));
      const Matrix b = mix(-4.7750, a, 2.0315, times(a, a));
      x = mix(3.4445, x, 1, times(b, x));
    }
    if (tall) x = transposed(x);
    const double longer = static_cast<double>(std::max(p.rows, p.cols));
    p = mix(1 - rate * decay, p, -rate * 0.2 * std::sqrt(longer), x);
  }
  void adamw(Matrix& p, const Matrix& g, int t) {
    averages(g, 0.95, 0.999);
    for (size_t i = 0; i < g.v.size(); ++i) {
      const double up = m.v[i] / (1 - std::pow(0.95, t)), down = v.v[i] / (1 - std::pow(0.999, t));
      p.v[i] = p.v[i] * (1 - rate * decay) - rate * up / (std::sqrt(down) + 1e-8);
    }
  }
};

GridSpec dense(int64_t in, int64_t out) {
  return row_of({layer(LayerKind::dense, {{"in", in}, {"out", out}})});
}

Tensor state_of(TrainRig& rig, const std::string& name) {
  for (const StateTensor& s : rig.step().state())
    if (s.name == name) return s.tensor;
  ADD_FAILURE() << "no " << name;
  return {};
}

struct Drawn {
  std::mt19937_64 random;
  int64_t from(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  }
};

Linear linear_of(TrainRig& rig, int64_t batch, int64_t in, int64_t out) {
  return {read(rig.step().x(), batch, in),
          read(rig.step().target(), batch, out),
          read(rig.step().weight(), 1, batch),
          read(state_of(rig, "(0, 0, 0, 0)/weight"), out, in),
          read(state_of(rig, "(0, 0, 0, 0)/bias"), 1, out),
          {},
          {}};
}

// So many steps on the same batch, which a step may overwrite.
void run(TrainRig& rig, int times, double rate) {
  for (int i = 0; i < times; ++i) {
    fill_with_sines(rig.step(), 0);
    rig.run(1, rate);
  }
}

class Layerwise : public ::testing::TestWithParam<const char*> {};

TEST_P(Layerwise, StepsAsTheFormulasOfItsSourceDo) {
  for (uint64_t seed = 0; seed < 40 && !HasFailure(); ++seed) {
    Drawn drawn{std::mt19937_64(seed)};
    const int64_t in = drawn.from(1, 20), out = drawn.from(1, 20), batch = drawn.from(1, 6);
    TrainStepOptions o;
    o.optimizer.kind = *parse_optimizer(GetParam());
    if (drawn.from(0, 1) == 0) o.optimizer.weight_decay = 0.25f;
    const bool clips = drawn.from(0, 2) == 0;
    if (clips) o.clip = {Clip::norm, 0.05f};
    TrainRig rig(dense(in, out), Shape{batch, in}, DType::f32, o);
    ASSERT_TRUE(rig.ready());
    Linear net = linear_of(rig, batch, in, out);
    const double rate = 0.02, decay = static_cast<double>(*resolved(o.optimizer).weight_decay);
    Source of_w{GetParam(), rate, decay, {}, {}, {}, {}}, of_b = of_w;
    for (int t = 1; t <= 6; ++t) {
      net.differentiate();
      const double all = std::hypot(norm(net.dw), norm(net.db));
      const double scale = clips ? std::min(1.0, 0.05 / (all + 1e-6)) : 1.0;
      of_w.step(net.w, mix(scale, net.dw, 0, net.dw), true, t);
      of_b.step(net.b, mix(scale, net.db, 0, net.db), false, t);
      run(rig, 1, rate);
      const Matrix w = read(state_of(rig, "(0, 0, 0, 0)/weight"), out, in);
      const Matrix b = read(state_of(rig, "(0, 0, 0, 0)/bias"), 1, out);
      for (size_t i = 0; i < w.v.size(); ++i)
        ASSERT_NEAR(w.v[i], net.w.v[i], 2e-4) << "seed " << seed << " step " << t;
      for (size_t i = 0; i < b.v.size(); ++i)
        ASSERT_NEAR(b.v[i], net.b.v[i], 2e-4) << "seed " << seed << " step " << t;
      // Where they part by rounding, the next step is judged from the same place.
      net.w = w;
      net.b = b;
    }
  }
}

TEST_P(Layerwise, GivesTheSameBitsForAnyThreadsAccumulatedOrNot) {
  const GridSpec grid =
      row_of({layer(LayerKind::dense, {{"in", 8}, {"out", 24}, {"activation", "tanh"}}),
              layer(LayerKind::dense, {{"in", 24}, {"out", 6}})});
  for (const int times : {1, 3}) {
    TrainStepOptions o;
    o.optimizer.kind = *parse_optimizer(GetParam());
    o.accumulate = times;
    o.noise = {0.001, 0.55};
    o.lookahead = {4, 0.5};
    o.average = {0.9, 0};
    TrainRig one(grid, Shape{16, 8}, DType::f32, o, reference_ops());
    TrainRig more(grid, Shape{16, 8}, DType::f32, o, cpu_ops(best_isa()), 3);
    const double before = one.run(1, 0.02)[0];
    run(one, 60, 0.02);
    EXPECT_LT(one.run(1, 0.02)[0], 0.9 * before);
    more.run(1, 0.02);
    run(more, 60, 0.02);
    more.run(1, 0.02);
    EXPECT_EQ(one.hash(), more.hash());
  }
}

TEST_P(Layerwise, GoesOnFromItsStateWithTheSameBits) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer(GetParam());
  o.noise = {0.01, 0.0};
  o.lookahead = {3, 0.5};
  o.average = {0.9, 0};
  o.rules.rates = {{"*/bias", 0.5}};
  TrainRig full(dense(7, 5), Shape{4, 7}, DType::f32, o);
  TrainRig first(dense(7, 5), Shape{4, 7}, DType::f32, o);
  TrainRig second(dense(7, 5), Shape{4, 7}, DType::f32, o);
  run(full, 10, 0.02);
  run(first, 5, 0.02);
  const std::vector<StateTensor>& from = first.step().state();
  const std::vector<StateTensor>& to = second.step().state();
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(from[i].name, to[i].name);
    std::copy_n(from[i].tensor.data, plain_bytes(DType::f32, from[i].tensor.shape),
                to[i].tensor.data);
  }
  ASSERT_TRUE(second.step().restored(first.step().updates()).ok());
  run(second, 5, 0.02);
  EXPECT_EQ(second.hash(), full.hash());
}

TEST_P(Layerwise, LeavesEverythingAsItIsWhereAStepIsNotFinite) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer(GetParam());
  o.noise = {0.01, 0.0};
  o.average = {0.9, 0};
  TrainRig rig(dense(7, 5), Shape{4, 7}, DType::f32, o);
  run(rig, 3, 0.02);
  std::vector<std::vector<float>> before;
  for (const StateTensor& s : rig.step().state())
    before.emplace_back(s.tensor.f32(), s.tensor.f32() + s.tensor.shape.count());
  fill_with_sines(rig.step(), 0);
  rig.step().x().f32()[0] = INFINITY;
  const Result<StepResult> dropped = rig.step().run(0.02);
  ASSERT_TRUE(dropped.ok());
  EXPECT_FALSE(dropped->finite);
  for (size_t i = 0; i < before.size(); ++i) {
    const Tensor& now = rig.step().state()[i].tensor;
    EXPECT_TRUE(std::equal(before[i].begin(), before[i].end(), now.f32()))
        << rig.step().state()[i].name;
  }
}
TEST_P(Layerwise, TakesASparseGradientForTheWholeTable) {
  const auto grid = [](bool sparse) {
    return row_of({layer(LayerKind::embedding, {{"vocab", 30}, {"width", 6}, {"sparse", sparse}}),
                   layer(LayerKind::dense, {{"in", 6}, {"out", 4}})});
  };
  for (const bool native : {false, true}) {
    TrainStepOptions o;
    o.optimizer.kind = *parse_optimizer(GetParam());
    o.native = native;
    const DType dtype = native ? DType::f16 : DType::f32;
    TrainRig all(grid(false), Shape{3, 5}, DType::f32, o, cpu_ops(best_isa()), 1, dtype);
    TrainRig sparse(grid(true), Shape{3, 5}, DType::f32, o, cpu_ops(best_isa()), 1, dtype);
    for (int i = 0; i < 5; ++i) {
      fill_with_sines(all.step(), 30);
      fill_with_sines(sparse.step(), 30);
      EXPECT_EQ(all.run(1, 0.1), sparse.run(1, 0.1));
    }
    EXPECT_EQ(all.hash(), sparse.hash());
  }
}
INSTANTIATE_TEST_SUITE_P(Optimizers, Layerwise, ::testing::Values("lamb", "adafactor", "muon"));

TEST(LayerwiseZeros, LambStepsFromWeightsOfZeroWithoutItsRatio) {
  TrainStepOptions o;
  o.optimizer.kind = *parse_optimizer("lamb");
  TrainRig rig(dense(3, 2), Shape{4, 3}, DType::f32, o);
  const Tensor bias = state_of(rig, "(0, 0, 0, 0)/bias");
  ASSERT_EQ(bias.f32()[0], 0.0f);
  run(rig, 1, 0.01);
  EXPECT_NEAR(std::fabs(static_cast<double>(bias.f32()[0])), 0.01, 1e-4);
}

// ---- what follows the weights ----

// The master, the average and the slow weights of plain gradient descent with lookahead, in
// doubles.
TEST(Averages, AndSlowWeightsAreThoseOfTheFormulas) {
  for (uint64_t seed = 0; seed < 30 && !HasFailure(); ++seed) {
    Drawn drawn{std::mt19937_64(seed)};
    const int64_t in = drawn.from(1, 9), out = drawn.from(1, 9), batch = drawn.from(1, 5);
    TrainStepOptions o;
    o.optimizer.kind = *parse_optimizer("sgd");
    o.average.decay = 0.1 * static_cast<double>(drawn.from(1, 9));
    o.lookahead = {drawn.from(1, 4), 0.1 * static_cast<double>(drawn.from(1, 10))};
    TrainRig rig(dense(in, out), Shape{batch, in}, DType::f32, o);
    ASSERT_TRUE(rig.ready());
    Linear net = linear_of(rig, batch, in, out);
    Matrix slow = net.w, slow_b = net.b, average = net.w;
    for (int t = 1; t <= 9; ++t) {
      net.differentiate();
      net.w = mix(1, net.w, -0.05, net.dw);
      net.b = mix(1, net.b, -0.05, net.db);
      if (t % o.lookahead.every == 0) {
        net.w = slow = mix(1 - o.lookahead.share, slow, o.lookahead.share, net.w);
        net.b = slow_b = mix(1 - o.lookahead.share, slow_b, o.lookahead.share, net.b);
      }
      const double keeps = t == 1 ? 0 : o.average.decay;
      average = mix(keeps, average, 1 - keeps, net.w);
      run(rig, 1, 0.05);
    }
    const Matrix w = read(state_of(rig, "(0, 0, 0, 0)/weight"), out, in);
    const Matrix a = read(state_of(rig, "(0, 0, 0, 0)/weight/average"), out, in);
    const Matrix s = read(state_of(rig, "(0, 0, 0, 0)/weight/slow"), out, in);
    for (size_t i = 0; i < w.v.size(); ++i) {
      EXPECT_NEAR(w.v[i], net.w.v[i], 1e-5) << seed;
      EXPECT_NEAR(a.v[i], average.v[i], 1e-5) << seed;
      EXPECT_NEAR(s.v[i], slow.v[i], 1e-5) << seed;
    }
  }
}

TEST(Averages, AreShownAndTakenAwayWithoutATraceInAnyNumberType) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i8, DType::i4}) {
    TrainStepOptions o;
    o.average.decay = 0.5;
    TrainRig shown(dense(20, 6), Shape{4, 20}, DType::f32, o, cpu_ops(best_isa()), 1, dtype);
    TrainRig plain(dense(20, 6), Shape{4, 20}, DType::f32, o, cpu_ops(best_isa()), 1, dtype);
    for (int i = 0; i < 6; ++i) {
      run(shown, 1, 0.01);
      run(plain, 1, 0.01);
      EXPECT_TRUE(shown.step().show_average(true).ok());
      if (i > 0) {
        EXPECT_NE(shown.hash(), plain.hash());
      }
      if (i % 2 == 0) {
        EXPECT_TRUE(shown.step().show_average(false).ok());
      }
    }
    run(shown, 1, 0.01);
    run(plain, 1, 0.01);
    EXPECT_EQ(shown.hash(), plain.hash()) << dtype_name(dtype);
  }
}

TEST(Averages, OfEpochsAreTheirMean) {
  TrainStepOptions o;
  o.average.from = 1;
  TrainRig rig(dense(5, 3), Shape{4, 5}, DType::f32, o);
  const Tensor w = state_of(rig, "(0, 0, 0, 0)/weight");
  std::vector<double> sum(15);
  EXPECT_FALSE(rig.step().has_average());
  for (int epoch = 0; epoch < 4; ++epoch) {
    run(rig, 3, 0.05);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(w.f32()[i]);
    ASSERT_TRUE(rig.step().average().ok());
  }
  ASSERT_TRUE(rig.step().show_average(true).ok());
  for (size_t i = 0; i < sum.size(); ++i)
    EXPECT_NEAR(static_cast<double>(w.f32()[i]), sum[i] / 4, 1e-6);
}

TEST(GradientNoise, HasTheDeviationThatWasAskedForAndFades) {
  for (const double fade : {0.0, 0.55}) {
    TrainStepOptions o;
    o.optimizer.kind = *parse_optimizer("sgd");
    o.noise = {0.5, fade};
    TrainRig noisy(dense(60, 50), Shape{4, 60}, DType::f32, o);
    const Tensor w = state_of(noisy, "(0, 0, 0, 0)/weight");
    for (int t = 0; t < 12; ++t) {
      fill_with_sines(noisy.step(), 0);
      Linear net = linear_of(noisy, 4, 60, 50);
      net.differentiate();
      run(noisy, 1, 1e-2);
      double sum = 0, squares = 0;
      for (size_t i = 0; i < net.w.v.size(); ++i) {
        const double noise = (net.w.v[i] - static_cast<double>(w.f32()[i])) / 1e-2 - net.dw.v[i];
        sum += noise;
        squares += noise * noise;
      }
      const double n = 3000, want = 0.5 * std::pow(1 + t, -fade / 2);
      EXPECT_NEAR(sum / n, 0, 4 * want / std::sqrt(n));
      EXPECT_NEAR(std::sqrt(squares / n) / want, 1, 4 / std::sqrt(2 * n));
    }
  }
}

TEST(WeightAverage, RefusesWhatDoesNotGoTogether) {
  const auto says = [](const TrainStepOptions& o) {
    const Status status = check_step_options(o);
    return status.ok() ? std::string() : status.error().message;
  };
  TrainStepOptions both;
  both.average = {0.9, 3};
  EXPECT_NE(says(both).find("two averages"), std::string::npos);
  TrainStepOptions decay;
  decay.average.decay = 1;
  EXPECT_NE(says(decay).find("below 1"), std::string::npos);
  TrainStepOptions native;
  native.native = true;
  native.average.decay = 0.9;
  EXPECT_NE(says(native).find("native"), std::string::npos);
  TrainStepOptions lbfgs;
  lbfgs.optimizer.kind = *parse_optimizer("lbfgs");
  lbfgs.noise.std = 1;
  EXPECT_NE(says(lbfgs).find("lbfgs"), std::string::npos);
  TrainStepOptions share;
  share.lookahead = {2, 1.5};
  EXPECT_NE(says(share).find("lookahead"), std::string::npos);
  EXPECT_EQ(says({}), "");
}

}  // namespace
}  // namespace loom::core::test
