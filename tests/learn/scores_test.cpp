// Metrics by name: scikit-learn's figures (tools/goldens/metrics.py), and counts over all pairs.
#include "learn/metrics/scores.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/rng.hpp"

namespace loom::core {
namespace {

using ::testing::HasSubstr;

// Shows outputs [n, width] in two parts and gives the metrics.
std::vector<MetricValue> measured(const std::vector<std::string>& names, const Dataset& data,
                                  Loss loss, std::vector<float> outputs, int64_t width) {
  LossSpec spec;
  spec.kind = loss;
  Result<MetricScores> scores = MetricScores::create(names, data, spec, width);
  EXPECT_TRUE(scores.ok()) << scores.error().message;
  if (!scores.ok()) return {};
  const int64_t half = data.samples / 2;
  scores->add(0, half, f32_matrix(outputs.data(), half, width));
  scores->add(half, data.samples - half,
              f32_matrix(outputs.data() + half * width, data.samples - half, width));
  return scores->values();
}

void expect_values(const std::vector<MetricValue>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i].value, expected[i], 1e-7) << values[i].name;
}

const std::vector<float> kLogits = {2.0f,  0.5f, -1.0f, 0.1f,  0.2f, 0.0f,  -1.0f, 1.5f,
                                    1.0f,  0.0f, 0.0f,  2.5f,  1.0f, 1.2f,  -0.5f, 0.3f,
                                    -0.2f, 0.9f, 2.2f,  -1.0f, 0.4f, -0.5f, 0.8f,  0.7f};

Dataset eight() {
  Dataset data;
  data.samples = 8;
  data.classes = 3;
  data.labels = {0, 1, 2, 2, 0, 2, 0, 1};
  return data;
}

TEST(Scores, OfClassesAreThoseOfScikitLearn) {
  expect_values(measured({"accuracy", "top2", "macro_f1", "auc", "ece"}, eight(),
                         Loss::cross_entropy, kLogits, 3),
                {0.75, 1.0, 0.7555555555555555, 0.8666666666666667, 0.29039102847643794});
}

TEST(Scores, IgnoredLabelsCountNothing) {
  Dataset data = eight();
  data.ignored = -100;
  std::vector<float> outputs = kLogits;
  data.samples = 10;
  data.labels.insert(data.labels.begin() + 3, {-100, -100});
  outputs.insert(outputs.begin() + 9, {5, 0, 0, 0, 5, 0});
  expect_values(measured({"accuracy", "top2", "macro_f1", "auc", "ece"}, data, Loss::cross_entropy,
                         outputs, 3),
                {0.75, 1.0, 0.7555555555555555, 0.8666666666666667, 0.29039102847643794});
}

TEST(Scores, OfTargetsZeroAndOneAreThoseOfScikitLearn) {
  Dataset data;
  data.samples = 7;
  data.outputs = 1;
  data.targets = {1, 0, 1, 0, 1, 1, 0};
  const std::vector<float> outputs = {0.5f, -1.0f, 2.0f, 0.5f, -0.25f, 1.5f, 0.5f};
  expect_values(measured({"auc", "bce", "accuracy"}, data, Loss::bce, outputs, 1),
                {0.75, 0.5556819069947302, 0.5714285714285714});
}

TEST(Scores, OfNumbersAreThoseOfScikitLearn) {
  Dataset data;
  data.samples = 4;
  data.outputs = 2;
  data.targets = {1, 2, 0.5f, -1, 3, 0.25f, -2, 4};
  const std::vector<float> outputs = {1.5f, 1, 0.25f, -0.5f, 2, 0, -1, 3.5f};
  expect_values(measured({"mae", "r2"}, data, Loss::mse, outputs, 2), {0.625, 0.853740203453164});
}

// mean_absolute_error and r2_score of scikit-learn with sample_weight=[1, 2, 0.5, 3].
TEST(Scores, OfNumbersCountSamplesByTheirWeights) {
  Dataset data;
  data.samples = 4;
  data.outputs = 1;
  data.targets = {1, 2, 4, 8};
  data.weights = {1, 2, 0.5f, 3};
  expect_values(measured({"mae", "r2"}, data, Loss::mse, {1.5f, 2, 3, 7}, 1),
                {0.6153846153846154, 0.9386792452830188});
}

TEST(Scores, TheAreaIsTheShareOfPairsInOrder) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Rng rng(seed, 0);
    std::vector<double> scores;
    std::vector<bool> positive;
    const uint64_t n = 1 + seed % 40;
    for (uint64_t i = 0; i < n; ++i) {
      scores.push_back(static_cast<double>(rng.bits(2 * i) % 8));
      positive.push_back(rng.bits(2 * i + 1) % 3 == 0);
    }
    double above = 0, pairs = 0;
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        if (!positive[a] || positive[b]) continue;
        pairs += 1;
        above += scores[a] > scores[b] ? 1 : scores[a] == scores[b] ? 0.5 : 0;
      }
    }
    const double area = area_under_roc(scores, positive);
    if (pairs == 0) {
      EXPECT_TRUE(std::isnan(area)) << seed;
    } else {
      EXPECT_NEAR(area, above / pairs, 1e-12) << seed;
    }
  }
}

TEST(Scores, CalibrationErrorIsThatOfFifteenBins) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    const Rng rng(seed, 0);
    std::vector<double> confidences;
    std::vector<bool> right;
    for (uint64_t i = 0; i < 60; ++i) {
      confidences.push_back(static_cast<double>(1 + rng.bits(2 * i) % 1000) / 1000.0);
      right.push_back(rng.bits(2 * i + 1) % 2 == 0);
    }
    double expected = 0;
    for (int b = 0; b < 15; ++b) {
      double n = 0, sum = 0, hits = 0;
      for (size_t i = 0; i < 60; ++i) {
        if (!(confidences[i] * 15 > b && confidences[i] * 15 <= b + 1)) continue;
        n += 1;
        sum += confidences[i];
        hits += right[i] ? 1 : 0;
      }
      if (n > 0) expected += n / 60 * std::fabs(hits / n - sum / n);
    }
    EXPECT_NEAR(expected_calibration_error(confidences, right), expected, 1e-12) << seed;
  }
}

TEST(Scores, ErrorsSayWhichMetricAndWhatThereIs) {
  const auto message = [](const std::string& name, const Dataset& data, LossSpec loss) {
    const auto made = MetricScores::create({name}, data, loss, 3);
    return made.ok() ? std::string("fine") : made.error().message;
  };
  Dataset numbers;
  numbers.samples = 1;
  numbers.targets = {1, 2, 3};
  LossSpec mse, bce, heads;
  bce.kind = Loss::bce;
  heads.heads = {1, 2};
  EXPECT_THAT(message("acuracy", eight(), mse), HasSubstr("unknown metric 'acuracy'"));
  EXPECT_THAT(message("top0", eight(), mse), HasSubstr("unknown metric 'top0'"));
  EXPECT_EQ(message("r2", eight(), mse), "metric r2 does not go with class labels");
  EXPECT_EQ(message("auc", numbers, mse), "metric auc does not go with numbers");
  EXPECT_EQ(message("top3", numbers, bce), "metric top3 does not go with targets 0 and 1");
  EXPECT_EQ(message("auc", eight(), heads), "metric auc is for one head alone");
  EXPECT_EQ(message("mae", numbers, mse), "fine");
}

}  // namespace
}  // namespace loom::core
