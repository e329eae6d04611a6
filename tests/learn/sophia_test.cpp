// Sophia-G against its formulas in float64: one layer under the cross-entropy of a softmax, whose
// gradients are written out. The labels that were drawn are found by trying all there could be.
#include <algorithm>
#include <cmath>
#include <random>

#include "base/threads/thread_pool.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kRows = 4, kIn = 3, kClasses = 3;
using Doubles = std::vector<double>;

Doubles doubles(const Tensor& t) {
  return {t.f32(), t.f32() + t.shape.count()};
}

// The state of a step by name: "", "/m", "/v" of weight or bias.
Doubles state(const TrainStep& step, const std::string& name) {
  for (const StateTensor& s : step.state())
    if (s.name == "(0, 0, 0, 0)/" + name) return doubles(s.tensor);
  ADD_FAILURE() << name;
  return {};
}

struct Layer {
  Doubles x, weight;  // of the rows
  Doubles w, b;

  Doubles softmax(int64_t row) const {
    Doubles p;
    double sum = 0;
    for (int64_t c = 0; c < kClasses; ++c) {
      double y = b[static_cast<size_t>(c)];
      for (int64_t k = 0; k < kIn; ++k)
        y += w[static_cast<size_t>(c * kIn + k)] * x[static_cast<size_t>(row * kIn + k)];
      p.push_back(std::exp(y));
      sum += p.back();
    }
    for (double& v : p) v /= sum;
    return p;
  }
  // The estimates for the weights, then the biases, for these labels.
  Doubles gradient(const std::vector<int>& labels) const {
    Doubles g(static_cast<size_t>(kClasses * (kIn + 1)));
    for (int64_t r = 0; r < kRows; ++r) {
      const Doubles p = softmax(r);
      for (int64_t c = 0; c < kClasses; ++c) {
        const auto at = static_cast<size_t>(r);
        const double d = weight[at] * (p[static_cast<size_t>(c)] - (labels[at] == c ? 1.0 : 0.0));
        for (int64_t k = 0; k < kIn; ++k)
          g[static_cast<size_t>(c * kIn + k)] += d * x[static_cast<size_t>(r * kIn + k)];
        g[static_cast<size_t>(kClasses * kIn + c)] += d;
      }
    }
    return g;
  }
  double squares() const {
    double sum = 0;
    for (const double w_r : weight) sum += w_r * w_r;
    return sum;
  }
};

Doubles joined(const TrainStep& step, const std::string& what) {
  Doubles all = state(step, "weight" + what);
  const Doubles bias = state(step, "bias" + what);
  all.insert(all.end(), bias.begin(), bias.end());
  return all;
}

Layer layer_of(const TrainStep& step) {
  return {doubles(step.x()), doubles(step.weight()), state(step, "weight"), state(step, "bias")};
}

TrainStepOptions options(int64_t every) {
  TrainStepOptions o;
  o.loss.kind = Loss::cross_entropy;
  o.class_ids = true;
  o.optimizer.kind = *parse_optimizer("sophia");
  o.optimizer.inverse_every = every;
  o.optimizer.weight_decay = 0.1f;
  return o;
}

GridSpec grid() {
  return row_of({layer(LayerKind::dense, {{"in", kIn}, {"out", kClasses}})});
}

// A batch; the last row weighs nothing, as rows do that only fill it up.
std::vector<int> fill(const TrainStep& step, std::mt19937_64& random) {
  std::normal_distribution<float> number(0, 1);
  std::vector<int> labels;
  for (int64_t i = 0; i < kRows * kIn; ++i) step.x().f32()[i] = number(random);
  for (int64_t r = 0; r < kRows; ++r) {
    labels.push_back(static_cast<int>(random() % kClasses));
    step.target().i32()[r] = labels.back();
    step.weight().f32()[r] = r + 1 == kRows ? 0.0f : 0.25f + 0.125f * static_cast<float>(r);
  }
  return labels;
}

// The distance of `got` from the nearest of what the labels could give.
double nearest_draw(const Layer& at, const Doubles& got) {
  double best = INFINITY;
  for (int draw = 0; draw < 81; ++draw) {
    const Doubles g = at.gradient({draw % 3, draw / 3 % 3, draw / 9 % 3, draw / 27});
    double worst = 0;
    for (size_t i = 0; i < g.size(); ++i)
      worst = std::max(worst, std::fabs(g[i] * g[i] / at.squares() - got[i]));
    best = std::min(best, worst);
  }
  return best;
}

TEST(Sophia, StepsByItsFormulasAndLooksAtTheCurvatureEverySoOften) {
  constexpr int64_t kEvery = 4;
  constexpr double kRate = 0.05;
  TrainStepOptions o = options(kEvery);
  o.optimizer.beta2 = 0.5f;  // so that steps are stopped by the curvature and by the clip
  o.optimizer.gamma = 0.5f;
  const auto b1 = static_cast<double>(*resolved(o.optimizer).beta1),
             b2 = static_cast<double>(*o.optimizer.beta2);
  const double gamma = static_cast<double>(*o.optimizer.gamma);
  TrainRig rig(grid(), Shape{kRows, kIn}, DType::f32, o);
  ASSERT_TRUE(rig.ready());
  TrainStep& step = rig.step();
  std::mt19937_64 random(3);
  int clipped = 0, free = 0;
  for (int64_t t = 0; t < 30 && !HasFailure(); ++t) {
    const std::vector<int> labels = fill(step, random);
    const Layer before = layer_of(step);
    const Doubles p = joined(step, ""), m = joined(step, "/m"), v = joined(step, "/v");
    const Result<StepResult> done = step.run(kRate);
    ASSERT_TRUE(done.ok()) << done.error().str();
    const Doubles p2 = joined(step, ""), m2 = joined(step, "/m"), v2 = joined(step, "/v");
    const Doubles g = before.gradient(labels);
    if (t % kEvery == 0) {
      Doubles drawn;
      for (size_t i = 0; i < v.size(); ++i) drawn.push_back((v2[i] - b2 * v[i]) / (1 - b2));
      EXPECT_LT(nearest_draw(before, drawn), 1e-4) << "step " << t;
    } else {
      EXPECT_EQ(v, v2) << "step " << t;
    }
    for (size_t i = 0; i < p.size(); ++i) {
      const double mean = b1 * m[i] + (1 - b1) * g[i];
      EXPECT_NEAR(m2[i], mean, 1e-6) << "step " << t;
      const double ratio =
          m2[i] / std::max(gamma * v2[i], static_cast<double>(*resolved(o.optimizer).eps));
      const double move = std::clamp(ratio, -1.0, 1.0);
      EXPECT_NEAR(p2[i], p[i] - kRate * (move + 0.1 * p[i]), 1e-6) << "step " << t;
      ++(std::fabs(ratio) > 1 ? clipped : free);
    }
  }
  EXPECT_GT(clipped, 50);
  EXPECT_GT(free, 20);
}

TEST(Sophia, EstimatesTheDiagonalOfTheGaussNewtonMatrix) {
  TrainStepOptions o = options(1);
  o.optimizer.beta2 = 0;  // each estimate alone
  TrainRig rig(grid(), Shape{kRows, kIn}, DType::f32, o);
  ASSERT_TRUE(rig.ready());
  TrainStep& step = rig.step();
  std::mt19937_64 random(5);
  fill(step, random);
  const Layer at = layer_of(step);
  constexpr int kTimes = 6000;
  Doubles mean(static_cast<size_t>(kClasses * (kIn + 1))), square = mean;
  for (int t = 0; t < kTimes; ++t) {
    ASSERT_TRUE(step.run(0.0).ok());
    const Doubles v = joined(step, "/v");
    for (size_t i = 0; i < v.size(); ++i) {
      mean[i] += v[i] / kTimes;
      square[i] += v[i] * v[i] / kTimes;
    }
  }
  for (int64_t c = 0; c < kClasses; ++c) {
    for (int64_t k = 0; k <= kIn; ++k) {
      double want = 0;
      for (int64_t r = 0; r < kRows; ++r) {
        const double p = at.softmax(r)[static_cast<size_t>(c)];
        const double x = k == kIn ? 1.0 : at.x[static_cast<size_t>(r * kIn + k)];
        const double w = at.weight[static_cast<size_t>(r)];
        want += w * w / at.squares() * p * (1 - p) * x * x;
      }
      const auto i = static_cast<size_t>(k == kIn ? kClasses * kIn + c : c * kIn + k);
      const double error = std::sqrt((square[i] - mean[i] * mean[i]) / kTimes);
      EXPECT_NEAR(mean[i], want, 5 * error) << "class " << c << " input " << k;
      EXPECT_LT(error, 0.05 * want);
    }
  }
}

TEST(Sophia, HasTheSameBitsOnEveryInstructionSetAndForAnyThreads) {
  const auto run = [](const Ops& ops, int threads) {
    TrainStepOptions o = options(3);
    o.accumulate = 2;
    TrainRig rig(row_of({layer(LayerKind::dense, {{"in", 9}, {"out", 17}, {"activation", "tanh"}}),
                         layer(LayerKind::dropout, {{"rate", 0.25}}),
                         layer(LayerKind::dense, {{"in", 17}, {"out", 5}})}),
                 Shape{8, 9}, DType::f32, o, ops, threads);
    EXPECT_TRUE(rig.ready());
    rig.run(20, 1e-2);
    return rig.hash();
  };
  const uint64_t want = run(reference_ops(), 1);
  for (const Isa isa : available_isas()) EXPECT_EQ(run(cpu_ops(isa), 3), want);
}

TEST(Sophia, RefusesWhatItCannotDrawFrom) {
  struct Case {
    const char* says;
    void (*change)(TrainStepOptions&);
  };
  const Case cases[] = {
      {"not of huber", [](TrainStepOptions& o) { o.loss.kind = Loss::huber, o.class_ids = false; }},
      {"the rule dfa", [](TrainStepOptions& o) { o.rule.kind = Rule::dfa; }},
      {"every 0 updates", [](TrainStepOptions& o) { o.optimizer.inverse_every = 0; }},
      {"gamma of sophia is 0", [](TrainStepOptions& o) { o.optimizer.gamma = 0; }},
  };
  for (const Case& c : cases) {
    TrainStepOptions o = options(10);
    c.change(o);
    ThreadPool pool(1, true);
    Result<Network> network = Network::finalize(grid(), Shape{kRows, kIn});
    ASSERT_TRUE(network.ok());
    ASSERT_TRUE(init_params(*network, DType::f32, 7, pool).ok());
    const Result<TrainStep> step = TrainStep::create(*network, o, reference_ops(), pool);
    ASSERT_FALSE(step.ok()) << c.says;
    EXPECT_NE(step.error().message.find(c.says), std::string::npos) << step.error().message;
  }
}

}  // namespace
}  // namespace loom::core::test
