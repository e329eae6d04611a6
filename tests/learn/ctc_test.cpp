// CTC against what it means: the sum over every way in which the rows can spell the labels, written
// out one by one, and differences of that sum. Then training with it.
#include "learn/loss/ctc_batch.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "grid/grid_testing.hpp"
#include "learn/trainer.hpp"

namespace loom::core::test {
namespace {

struct Drawn {
  int64_t steps = 0, classes = 0, blank = 0;
  std::vector<double> logits;
  std::vector<int32_t> labels;

  std::vector<float> floats() const { return {logits.begin(), logits.end()}; }
};

Drawn draw(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto random_integer = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Drawn d;
  d.steps = random_integer(1, 6);
  d.classes = random_integer(2, 4);
  d.blank = random_integer(0, d.classes - 1);
  // Floats, so that both sides begin with the same numbers.
  std::uniform_real_distribution<float> number(-3, 3);
  for (int64_t i = 0; i < d.steps * d.classes; ++i)
    d.logits.push_back(static_cast<double>(number(random)));
  const int64_t most = random_integer(0, d.steps);
  for (int64_t i = 0; i < most; ++i) {
    int64_t label = random_integer(0, d.classes - 2);
    if (label >= d.blank) ++label;
    d.labels.push_back(static_cast<int32_t>(label));
  }
  return d;
}

// Equal neighbours become one, then blanks go.
std::vector<int32_t> spelled(const std::vector<int64_t>& path, int64_t blank) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < path.size(); ++i) {
    if (i > 0 && path[i] == path[i - 1]) continue;
    if (path[i] != blank) out.push_back(static_cast<int32_t>(path[i]));
  }
  return out;
}

// -log of the sum over all classes^steps paths that spell the labels.
double written_out(const Drawn& d, const std::vector<double>& logits) {
  std::vector<int64_t> path(static_cast<size_t>(d.steps));
  double sum = 0;
  while (true) {
    if (spelled(path, d.blank) == d.labels) {
      double p = 1;
      for (int64_t t = 0; t < d.steps; ++t) {
        double all = 0;
        for (int64_t k = 0; k < d.classes; ++k)
          all += std::exp(logits[static_cast<size_t>(t * d.classes + k)]);
        p *= std::exp(logits[static_cast<size_t>(t * d.classes + path[static_cast<size_t>(t)])]) /
             all;
      }
      sum += p;
    }
    size_t at = 0;
    while (at < path.size() && ++path[at] == d.classes) path[at++] = 0;
    if (at == path.size()) return -std::log(sum);
  }
}

TEST(Ctc, IsTheSumOverAllWaysToSpellTheLabels) {
  int64_t finite = 0, impossible = 0;
  for (uint64_t seed = 0; seed < 400 && !HasFailure(); ++seed) {
    const Drawn d = draw(seed);
    const double want = written_out(d, d.logits);
    const double got =
        ctc_loss(d.floats().data(), d.steps, d.classes, d.labels, d.blank, 1, nullptr);
    const bool fits = ctc_least_steps(d.labels) <= d.steps;
    EXPECT_EQ(fits, std::isfinite(want)) << "seed " << seed;
    EXPECT_TRUE(fits ? std::fabs(got - want) < 1e-11 * (1 + want) : got == INFINITY)
        << "seed " << seed << ": " << got << ", not " << want;
    ++(fits ? finite : impossible);
  }
  EXPECT_GT(finite, 200);
  EXPECT_GT(impossible, 20);
}

TEST(Ctc, HasTheGradientOfDifferencesOfThatSum) {
  for (uint64_t seed = 1000; seed < 1120 && !HasFailure(); ++seed) {
    const Drawn d = draw(seed);
    if (ctc_least_steps(d.labels) > d.steps) continue;
    std::vector<float> gradient(d.logits.size(), 7.0f);
    ctc_loss(d.floats().data(), d.steps, d.classes, d.labels, d.blank, 0.5, gradient.data());
    for (size_t i = 0; i < d.logits.size(); ++i) {
      constexpr double kStep = 1e-5;
      std::vector<double> up = d.logits, down = d.logits;
      up[i] += kStep;
      down[i] -= kStep;
      const double want = (written_out(d, up) - written_out(d, down)) / (2 * kStep);
      EXPECT_NEAR(static_cast<double>(gradient[i]), 0.5 * want, 1e-6) << "seed " << seed;
    }
  }
}

TEST(Ctc, StaysFiniteForLongSequencesAndLargeLogits) {
  constexpr int64_t kSteps = 800, kClasses = 5;
  std::vector<float> logits(static_cast<size_t>(kSteps * kClasses));
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = 80.0f * std::sin(static_cast<float>(i * i % 977));
  std::vector<int32_t> labels;
  for (int i = 0; i < 200; ++i) labels.push_back(1 + i % 4);
  std::vector<float> gradient(logits.size());
  const double loss = ctc_loss(logits.data(), kSteps, kClasses, labels, 0, 1, gradient.data());
  EXPECT_TRUE(std::isfinite(loss));
  for (int64_t t = 0; t < kSteps; ++t) {
    double sum = 0;  // softmax minus shares that sum to 1
    for (int64_t k = 0; k < kClasses; ++k)
      sum += static_cast<double>(gradient[static_cast<size_t>(t * kClasses + k)]);
    ASSERT_NEAR(sum, 0, 1e-4) << t;
  }
}

TEST(Ctc, TheBestPathDropsRepeatsThenBlanks) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Drawn d = draw(seed);
    std::vector<int64_t> best;
    for (int64_t t = 0; t < d.steps; ++t) {
      int64_t most = 0;
      for (int64_t k = 1; k < d.classes; ++k) {
        if (d.logits[static_cast<size_t>(t * d.classes + k)] >
            d.logits[static_cast<size_t>(t * d.classes + most)])
          most = k;
      }
      best.push_back(most);
    }
    EXPECT_EQ(ctc_best_path(d.floats().data(), d.steps, d.classes, d.blank),
              spelled(best, d.blank));
  }
}

// ---- training -----------------------------------------------------------------------------------

constexpr int64_t kRows = 12;

// Strokes of one to three rows, some followed by a gap. Their kinds spell the labels.
Dataset strokes(int64_t samples, uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto random_integer = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Dataset data;
  data.samples = samples;
  data.sample = Shape{kRows, 3};
  data.classes = 4;
  data.ignored = -1;
  for (int64_t i = 0; i < samples; ++i) {
    std::vector<float> x(static_cast<size_t>(kRows * 3));
    std::vector<int32_t> labels;
    for (int64_t row = random_integer(0, 2); row < kRows && labels.size() < 4;) {
      const int64_t kind = random_integer(0, 2), end = std::min(kRows, row + random_integer(1, 3));
      labels.push_back(static_cast<int32_t>(kind) + 1);
      for (; row < end; ++row) x[static_cast<size_t>(row * 3 + kind)] = 1.0f;
      row += random_integer(1, 2);
    }
    labels.resize(4, -1);
    data.inputs.insert(data.inputs.end(), x.begin(), x.end());
    data.labels.insert(data.labels.end(), labels.begin(), labels.end());
  }
  return data;
}

GridSpec reader() {
  return row_of({layer(LayerKind::dense, {{"in", 3}, {"out", 12}, {"activation", "tanh"}}),
                 layer(LayerKind::dense, {{"in", 12}, {"out", 4}})});
}

TrainerSpec options(int64_t batch, int accumulate = 1) {
  TrainerSpec o;
  o.step.loss.kind = Loss::ctc;
  o.step.accumulate = accumulate;
  o.rate = 0.02;
  o.batch = batch;
  return o;
}

struct Outcome {
  std::vector<double> losses;
  Evaluation last;
  std::vector<float> weights;
};

Outcome train(const TrainerSpec& o, const Ops& ops, int threads, int epochs) {
  ThreadPool pool(threads, true);
  const Dataset data = strokes(60, 3), other = strokes(40, 4);
  Result<Trainer> trainer = Trainer::create(reader(), data, o, ops, pool);
  EXPECT_TRUE(trainer.ok()) << trainer.error().str();
  Outcome run;
  if (!trainer.ok()) return run;
  for (int i = 0; i < epochs; ++i) {
    const Result<EpochReport> report = trainer->epoch(data, other);
    EXPECT_TRUE(report.ok()) << report.error().str();
    if (!report.ok()) return run;
    run.losses.push_back(report->train_loss);
    run.last = *report->validation;
  }
  for (const StateTensor& s : trainer->step().state())
    run.weights.insert(run.weights.end(), s.tensor.f32(), s.tensor.f32() + s.tensor.shape.count());
  return run;
}

TEST(CtcTraining, LearnsToSpellWithTheSameBitsForAnyThreads) {
  const Outcome one = train(options(8), reference_ops(), 1, 30);
  EXPECT_LT(one.losses.back(), 0.2 * one.losses.front());
  EXPECT_GT(*one.last.accuracy, 0.9);
  const Outcome more = train(options(8), cpu_ops(best_isa()), 3, 30);
  EXPECT_EQ(one.weights, more.weights);
  EXPECT_EQ(one.last.loss, more.last.loss);
}

TEST(CtcTraining, AccumulatedBatchesAreOneLargeBatch) {
  const Outcome random_integer = train(options(60), reference_ops(), 1, 1);
  const Outcome parts = train(options(20, 3), reference_ops(), 1, 1);
  EXPECT_NEAR(random_integer.last.loss, parts.last.loss, 1e-5);
  EXPECT_NEAR(random_integer.losses[0], parts.losses[0], 1e-5);
}

TEST(CtcTraining, RefusesLabelsThatCannotBeSpelled) {
  struct Case {
    std::vector<int32_t> labels;
    const char* says;
  };
  const Case cases[] = {{{0, 1}, "not the blank 0"},
                        {{1, 9}, "from 0 to 3"},
                        {{-1, 2}, "after the end"},
                        {{1, 1, 2, 2, 1, 1, 2, 2}, "need 12 rows"}};
  for (const Case& c : cases) {
    Dataset data;
    data.samples = 1;
    data.labels = c.labels;
    data.ignored = -1;
    const Status status = check_ctc(data, 11, 4, 0);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find(c.says), std::string::npos) << status.error().message;
  }
}

}  // namespace
}  // namespace loom::core::test
