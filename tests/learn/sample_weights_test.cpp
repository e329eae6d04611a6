// Weights of samples, classes and labels, against sums written out in double, against data with
// repeated samples, and against PyTorch's weighted cross entropy.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "base/numbers/rng.hpp"
#include "learn/train_rig.hpp"
#include "learn/trainer.hpp"

namespace loom::core::test {
namespace {

using ::testing::HasSubstr;

// `n` samples of 4 numbers with labels of 3 classes, the first the most frequent.
Dataset labeled(int64_t n, uint64_t seed) {
  Dataset d;
  const Rng rng(seed, 1);
  d.samples = n;
  d.sample = Shape{4};
  d.classes = 3;
  for (int64_t i = 0; i < 4 * n; ++i)
    d.inputs.push_back(static_cast<float>(rng.bits(static_cast<uint64_t>(i)) % 1000) / 500.0f - 1);
  for (int64_t i = 0; i < n; ++i) d.labels.push_back(i % 7 == 0 ? 2 : i % 5 == 0 ? 1 : 0);
  return d;
}

Trainer trainer_of(const Dataset& data, TrainerSpec o) {
  static ThreadPool pool(1, true);
  o.step.loss.kind = data.has_labels() ? Loss::cross_entropy : Loss::mse;
  const GridSpec grid =
      row_of({layer(LayerKind::dense, {{"in", 4}, {"out", 8}, {"activation", "tanh"}}),
              layer(LayerKind::dense, {{"in", 8}, {"out", 3}})});
  return Trainer::create(grid, data, o, reference_ops(), pool).value();
}

// sum of weight x loss / sum of weight, and the share that is right, by hand.
std::pair<double, double> by_hand(Trainer& trainer, const Dataset& data,
                                  const std::vector<double>& weights) {
  double sum = 0, all = 0;
  int64_t right = 0, named = 0;
  (void)trainer.evaluate(data, [&](int64_t first, int64_t count, const Tensor& y) {
    for (int64_t r = 0; r < count; ++r) {
      const auto at = static_cast<size_t>(first + r);
      const float* row = y.f32_row(r);
      if (data.ignores(data.labels[at])) continue;
      double total = 0;
      for (int c = 0; c < 3; ++c) total += std::exp(static_cast<double>(row[c]));
      const auto label = static_cast<size_t>(data.labels[at]);
      sum += weights[at] * (std::log(total) - static_cast<double>(row[label]));
      all += weights[at];
      right += std::max_element(row, row + 3) - row == data.labels[at] ? 1 : 0;
      ++named;
    }
  });
  return {sum / all, static_cast<double>(right) / static_cast<double>(named)};
}

TEST(SampleWeights, TheMeanIsThatOfWeightedLossesOfWhatCounts) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Dataset data = labeled(20 + static_cast<int64_t>(seed), seed);
    const Rng rng(seed, 2);
    std::vector<double> weights;
    TrainerSpec o;
    o.batch = 1 + static_cast<int64_t>(seed % 9);
    if (seed % 2 == 0) o.class_weights = {0.5f, 2.0f, 0.25f};
    for (int64_t i = 0; i < data.samples; ++i) {
      const auto at = static_cast<size_t>(i);
      if (seed % 3 == 0) data.weights.push_back(static_cast<float>(rng.bits(at) % 5));
      if (seed % 5 == 0) data.ignored = -100;
      double w = seed % 3 == 0 ? static_cast<double>(data.weights[at]) : 1.0;
      if (seed % 2 == 0)
        w *= static_cast<double>(o.class_weights[static_cast<size_t>(data.labels[at])]);
      weights.push_back(w);
      if (seed % 5 == 0 && i % 4 == 1) data.labels[at] = -100;
    }
    Trainer trainer = trainer_of(data, o);
    const auto [loss, accuracy] = by_hand(trainer, data, weights);
    const Evaluation e = trainer.evaluate(data).value();
    EXPECT_NEAR(e.loss, loss, 1e-6) << seed;
    EXPECT_DOUBLE_EQ(*e.accuracy, accuracy) << seed;
    // With a rate of 0 the loss of an epoch is that of an evaluation.
    o.rate = 0;
    Trainer still = trainer_of(data, o);
    EXPECT_NEAR(still.epoch(data, {}).value().train_loss, loss, 1e-6) << seed;
  }
}

TEST(SampleWeights, AWeightOfTwoIsASampleThatStandsTwice) {
  Dataset once = labeled(12, 3);
  for (int64_t i = 0; i < 12; ++i) once.weights.push_back(i % 3 == 0 ? 2.0f : 1.0f);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < 12; ++i) rows.insert(rows.end(), i % 3 == 0 ? 2 : 1, i);
  Dataset twice = once;
  twice.weights.clear();
  twice = twice.select(rows);
  TrainerSpec o;
  o.batch = 16;
  o.shuffle = false;
  Trainer a = trainer_of(once, o), b = trainer_of(twice, o);
  for (int i = 0; i < 5; ++i) {
    EXPECT_NEAR(a.epoch(once, {}).value().train_loss, b.epoch(twice, {}).value().train_loss, 1e-6);
  }
}

TEST(SampleWeights, IgnoredLabelsLeaveNoTraceInTheUpdate) {
  for (const int32_t ignored : {-100, 255, 1}) {
    Dataset data = labeled(12, 4), rest = data;
    std::vector<int64_t> kept;
    data.ignored = ignored;
    for (int64_t i = 0; i < 12; ++i) {
      int32_t& label = data.labels[static_cast<size_t>(i)];
      if (i % 4 == 2) label = ignored;
      if (label != ignored) kept.push_back(i);
    }
    rest = rest.select(kept);
    TrainerSpec o;
    o.batch = 12;
    o.shuffle = false;
    Trainer a = trainer_of(data, o), b = trainer_of(rest, o);
    for (int i = 0; i < 5; ++i) {
      EXPECT_NEAR(a.epoch(data, {}).value().train_loss, b.epoch(rest, {}).value().train_loss, 1e-6);
    }
  }
}

// torch.nn.functional.cross_entropy with weight, which divides by the sum of the weights.
TEST(SampleWeights, ClassWeightsAreThoseOfPyTorch) {
  const double expected = 0.9514775508821899;
  const double x[2][3] = {{0.5, -1.25, 2.0}, {-0.75, 3.0, 0.125}};
  const double w[3] = {0.5, 1.0, 2.0};
  const int labels[2] = {2, 0};
  double sum = 0, all = 0;
  for (int r = 0; r < 2; ++r) {
    const double total = std::exp(x[r][0]) + std::exp(x[r][1]) + std::exp(x[r][2]);
    sum += w[labels[r]] * (std::log(total) - x[r][labels[r]]);
    all += w[labels[r]];
  }
  EXPECT_NEAR(sum / all, expected, 1e-12);  // the rule that the tests above write out
}

TEST(SampleWeights, BalancedOrdersShowClassesEquallyOften) {
  Dataset data = labeled(100, 5);
  data.ignored = 1;
  const std::vector<int64_t> order = balanced_order(data, 7, 0);
  ASSERT_EQ(order.size(), 100u);
  int counts[3] = {};
  std::set<int64_t> rare;
  for (const int64_t row : order) {
    const int32_t label = data.labels[static_cast<size_t>(row)];
    ++counts[label];
    if (label == 2) rare.insert(row);
  }
  EXPECT_EQ(counts[0], 50);
  EXPECT_EQ(counts[1], 0);
  EXPECT_EQ(counts[2], 50);
  EXPECT_EQ(rare.size(), 15u);  // all of the rare class, before one comes again
  EXPECT_EQ(balanced_order(data, 7, 0), order);
  EXPECT_NE(balanced_order(data, 7, 1), order);
  EXPECT_NE(balanced_order(data, 8, 0), order);
}

// sklearn.utils.class_weight.compute_class_weight("balanced"): samples / (classes x count).
TEST(SampleWeights, BalancedWeightsMakeClassesCountEqually) {
  Dataset data = labeled(1, 1);
  data.samples = 10;
  data.labels = {0, 0, 0, 0, 0, 0, 2, 2, 2, 7};
  data.ignored = 7;
  const std::vector<float> weights = balanced_weights(data, 4);
  EXPECT_EQ(weights, (std::vector<float>{0.75f, 1.0f, 1.5f, 1.0f}));
}

TEST(SampleWeights, ErrorsSayWhatIsWrong) {
  const auto with_error = [](auto change) {
    Dataset data = labeled(8, 2);
    change(data);
    const Status status = data.check();
    return status.ok() ? std::string("fine") : status.error().message;
  };
  EXPECT_EQ(with_error([](Dataset&) {}), "fine");
  EXPECT_THAT(with_error([](Dataset& d) {
                d.weights = {1, 2};
              }),
              HasSubstr("2 weights, must have 8"));
  EXPECT_THAT(with_error([](Dataset& d) { d.weights = {1, 1, 1, -1, 1, 1, 1, 1}; }),
              HasSubstr("sample 3: its weight is -1, must be 0 or more"));
  EXPECT_THAT(with_error([](Dataset& d) { d.weights.assign(8, 0.0f); }),
              HasSubstr("every sample has weight 0"));
  EXPECT_THAT(with_error([](Dataset& d) {
                d.labels.assign(8, -1);
                d.ignored = -1;
              }),
              HasSubstr("every label is -1, which is ignored"));
  EXPECT_THAT(with_error([](Dataset& d) { d.labels[2] = -1; }),
              HasSubstr("sample 2: label -1 must"));
  TrainerSpec o;
  ThreadPool pool(1, true);
  const GridSpec grid = row_of({layer(LayerKind::dense, {{"in", 4}, {"out", 3}})});
  o.step.loss.kind = Loss::cross_entropy;
  o.class_weights = {1, 2};
  const Dataset data = labeled(8, 2);
  const auto made = Trainer::create(grid, data, o, reference_ops(), pool);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message, HasSubstr("2 class weights, must be 3"));
}

}  // namespace
}  // namespace loom::core::test
