// Samples that are held out: how many, of which classes, the same for the same seed.
#include "learn/data/split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <tuple>

namespace loom::core {
namespace {

// Samples that hold their own number; `labels` empty: a number as target.
Dataset numbered(int64_t n, std::vector<int32_t> labels = {}) {
  Dataset d;
  d.samples = n;
  d.sample = Shape{1};
  for (int64_t i = 0; i < n; ++i) d.inputs.push_back(static_cast<float>(i));
  d.classes = 8;
  if (labels.empty()) {
    d.outputs = 1;
    d.targets = d.inputs;
  }
  d.labels = std::move(labels);
  return d;
}

std::vector<int32_t> sorted_labels(const std::vector<int64_t>& counts) {
  std::vector<int32_t> labels;
  for (size_t c = 0; c < counts.size(); ++c)
    labels.insert(labels.end(), static_cast<size_t>(counts[c]), static_cast<int32_t>(c));
  return labels;
}

std::map<int32_t, int64_t> count(const Dataset& d) {
  std::map<int32_t, int64_t> counts;
  for (const int32_t label : d.labels) ++counts[label];
  return counts;
}

TEST(Split, KeepsTheShareOfEveryClass) {
  struct Case {
    std::vector<int64_t> counts;
    double share;
  };
  const Case cases[] = {{{50, 50, 50}, 0.8},     {{10, 90}, 0.5},    {{7, 8, 9, 10}, 0.75},
                        {{1, 1, 1, 1, 1}, 0.6},  {{100, 3, 1}, 0.9}, {{2, 2}, 0.5},
                        {{3, 5, 7, 11, 13}, 0.1}};
  for (const Case& c : cases) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const std::vector<int32_t> labels = sorted_labels(c.counts);
      const auto n = static_cast<int64_t>(labels.size());
      const Result<SplitDataset> parts = split_dataset(numbered(n, labels), {c.share, seed, true});
      ASSERT_TRUE(parts.ok()) << parts.error().str();
      EXPECT_TRUE(parts->by_class);
      EXPECT_EQ(parts->train.samples, std::lround(c.share * static_cast<double>(n)));
      EXPECT_EQ(parts->train.samples + parts->validation.samples, n);
      std::map<int32_t, int64_t> train = count(parts->train);
      for (size_t k = 0; k < c.counts.size(); ++k) {
        const double exact = c.share * static_cast<double>(c.counts[k]);
        EXPECT_LE(std::abs(static_cast<double>(train[static_cast<int32_t>(k)]) - exact), 1)
            << "class " << k << " of " << c.counts[k] << ", share " << c.share;
      }
    }
  }
}

TEST(Split, GivesEverySampleToOnePartInTheOrderOfTheFile) {
  for (const bool classes : {false, true}) {
    const Dataset all =
        numbered(101, classes ? sorted_labels({40, 40, 21}) : std::vector<int32_t>());
    const Result<SplitDataset> parts = split_dataset(all, {0.7, 3, true});
    ASSERT_TRUE(parts.ok());
    EXPECT_EQ(parts->by_class, classes);
    EXPECT_TRUE(std::is_sorted(parts->train.inputs.begin(), parts->train.inputs.end()));
    EXPECT_TRUE(std::is_sorted(parts->validation.inputs.begin(), parts->validation.inputs.end()));
    std::vector<float> together = parts->train.inputs;
    together.insert(together.end(), parts->validation.inputs.begin(),
                    parts->validation.inputs.end());
    std::sort(together.begin(), together.end());
    EXPECT_EQ(together, all.inputs);
    EXPECT_NE(parts->validation.inputs.front(), 71) << "not the end of the file";
  }
}

TEST(Split, IsAFunctionOfTheSeed) {
  const Dataset all = numbered(60, sorted_labels({20, 20, 20}));
  const auto held = [&](uint64_t seed) {
    return split_dataset(all, {0.8, seed, true})->validation.inputs;
  };
  EXPECT_EQ(held(1), held(1));
  EXPECT_NE(held(1), held(2));
}

TEST(Split, WithoutShufflingTheFirstSamplesTrain) {
  const Result<SplitDataset> parts =
      split_dataset(numbered(5, sorted_labels({4, 1})), {0.6, 9, false});
  ASSERT_TRUE(parts.ok());
  EXPECT_FALSE(parts->by_class);
  EXPECT_EQ(parts->train.inputs, (std::vector<float>{0, 1, 2}));
  EXPECT_EQ(parts->validation.labels, (std::vector<int32_t>{0, 1}));
}

TEST(Split, RefusesAPartWithoutSamples) {
  for (const double share : {0.0, 0.1, 0.95, 1.0}) {
    const Result<SplitDataset> parts = split_dataset(numbered(4), {share, 1, true});
    ASSERT_FALSE(parts.ok()) << share;
    EXPECT_NE(parts.error().message.find("both parts need at least one"), std::string::npos);
  }
}

// Random labels, or none: whatever they are, folds part the samples, and are alike.
TEST(Folds, PartTheSamplesAndAreAlikeInEveryClass) {
  for (uint64_t seed = 0; seed < 60 && !HasFailure(); ++seed) {
    std::mt19937_64 random(seed);
    const auto random_integer = [&](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const int64_t folds = random_integer(2, 7), n = random_integer(folds, 80);
    const bool classes = random_integer(0, 3) > 0, shuffle = random_integer(0, 3) > 0;
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < n && classes; ++i)
      labels.push_back(static_cast<int32_t>(std::min(random_integer(0, 7), random_integer(0, 7))));
    std::vector<int> visited(static_cast<size_t>(n));
    std::vector<int64_t> sizes;
    std::map<int32_t, std::vector<int64_t>> of_class;
    for (int64_t fold = 0; fold < folds; ++fold) {
      const SplitSpec spec{0.5, seed, shuffle, folds, fold};
      const Result<SplitDataset> parts = split_dataset(numbered(n, labels), spec);
      ASSERT_TRUE(parts.ok()) << parts.error().str();
      EXPECT_EQ(parts->train.samples + parts->validation.samples, n);
      for (const float x : parts->validation.inputs) ++visited[static_cast<size_t>(x)];
      sizes.push_back(parts->validation.samples);
      std::map<int32_t, int64_t> counts = count(parts->validation);
      for (const int32_t label : labels) of_class[label].resize(static_cast<size_t>(folds));
      for (const auto& [label, times] : counts) of_class[label][static_cast<size_t>(fold)] = times;
      if (!shuffle) {
        const std::vector<float>& x = parts->validation.inputs;
        EXPECT_EQ(x.back() - x.front() + 1, static_cast<float>(x.size()));
      }
    }
    EXPECT_EQ(visited, std::vector<int>(static_cast<size_t>(n), 1));
    const auto apart = [](const std::vector<int64_t>& v) {
      return *std::max_element(v.begin(), v.end()) - *std::min_element(v.begin(), v.end());
    };
    EXPECT_LE(apart(sizes), 1);
    for (const auto& [label, times] : of_class) {
      if (shuffle) {
        EXPECT_LE(apart(times), 1) << "seed " << seed << " class " << label;
      }
    }
  }
}

TEST(Folds, ThatCannotBeAreErrors) {
  for (const auto& [folds, fold, says] :
       {std::tuple{int64_t{1}, int64_t{0}, "give at least 2"},
        std::tuple{int64_t{9}, int64_t{0}, "9 folds of 8 samples"},
        std::tuple{int64_t{4}, int64_t{4}, "fold 4 must be from 0 to 3"}}) {
    const Result<SplitDataset> parts = split_dataset(numbered(8), {0.5, 1, true, folds, fold});
    ASSERT_FALSE(parts.ok());
    EXPECT_NE(parts.error().message.find(says), std::string::npos) << parts.error().message;
  }
}

}  // namespace
}  // namespace loom::core
