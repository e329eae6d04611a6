// Votes, complements and stacking through the public interface.
#include "loom/ensemble.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "evolve/networks.hpp"

namespace loom::core {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

Mask mask(const std::string& bits) {
  Mask out;
  for (const char c : bits) out.push_back(c == '1');
  return out;
}

TEST(ComplementaryPairs, ComeBestCoverageFirstThenLeastOverlap) {
  const std::vector<Mask> masks = {mask("1100"), mask("0011"), mask("1110"), mask("1101")};
  const auto pairs = complementary_pairs(masks, 0.9).value();
  ASSERT_EQ(pairs.size(), 4u);
  EXPECT_EQ(std::pair(pairs[0].a, pairs[0].b), (std::pair<int64_t, int64_t>(0, 1)));
  EXPECT_EQ(pairs[0].coverage, 1);
  EXPECT_EQ(pairs[0].overlap, 0);
  EXPECT_EQ(std::pair(pairs[1].a, pairs[1].b), (std::pair<int64_t, int64_t>(1, 2)));
  EXPECT_EQ(pairs[1].overlap, 0.25);
  EXPECT_EQ(std::pair(pairs[2].a, pairs[2].b), (std::pair<int64_t, int64_t>(1, 3)));
  EXPECT_EQ(std::pair(pairs[3].a, pairs[3].b), (std::pair<int64_t, int64_t>(2, 3)));
  EXPECT_EQ(complementary_pairs(masks)->size(), 6u);
}

TEST(GreedyCover, TakesTheModelThatAddsMost) {
  const Cover cover =
      greedy_cover({mask("110000"), mask("111100"), mask("000011"), mask("000001")}).value();
  EXPECT_THAT(cover.models, ElementsAre(1, 2));
  EXPECT_THAT(cover.coverage, ElementsAre(DoubleEq(4.0 / 6), DoubleEq(1)));
  EXPECT_THAT(greedy_cover({mask("110000"), mask("111100"), mask("000011")}, 1)->models,
              ElementsAre(1));
  EXPECT_TRUE(greedy_cover({mask("000")})->models.empty()) << "nothing to cover";
}

TEST(MaskSimilarity, IsTheCosineOfZerosAndOnes) {
  EXPECT_DOUBLE_EQ(mask_similarity(mask("1100"), mask("1100")).value(), 1);
  EXPECT_DOUBLE_EQ(mask_similarity(mask("1100"), mask("0011")).value(), 0);
  EXPECT_DOUBLE_EQ(mask_similarity(mask("1110"), mask("0110")).value(), 2 / std::sqrt(6.0));
  EXPECT_DOUBLE_EQ(mask_similarity(mask("000"), mask("111")).value(), 0);
  EXPECT_DOUBLE_EQ(mask_similarity({}, {}).value(), 0);
}

TEST(MajorityVote, GivesTiesToTheLowestClass) {
  EXPECT_THAT(majority_vote({{0, 1, 1}, {0, 1, 2}, {2, 1, 2}}).value(), ElementsAre(0, 1, 2));
  EXPECT_THAT(majority_vote({{7, 3}, {2, 9}}).value(), ElementsAre(2, 3));
  EXPECT_THAT(majority_vote({{7, 3}, {2, 9}}, {2, 1}).value(), ElementsAre(7, 3));
  // The order of the voters does not matter.
  const Rng rng(3, 1);
  std::vector<std::vector<int64_t>> votes(5, std::vector<int64_t>(50));
  for (size_t i = 0; i < 250; ++i) votes[i / 50][i % 50] = rng.bits(i) % 4;
  const std::vector<int64_t> first = majority_vote(votes).value();
  for (int turn = 0; turn < 5; ++turn) {
    std::rotate(votes.begin(), votes.begin() + 1, votes.end());
    EXPECT_EQ(majority_vote(votes).value(), first);
  }
}

TEST(SoftVote, IsTheWeightedMean) {
  const std::vector<float> a = {0.9f, 0.1f, 0.4f, 0.6f}, b = {0.2f, 0.8f, 0.6f, 0.4f};
  const loom::Tensor x = loom::Tensor::copy(a, {2, 2}).value(),
                     y = loom::Tensor::copy(b, {2, 2}).value();
  const loom::Tensor even = soft_vote({x, y}).value();
  EXPECT_FLOAT_EQ(even.values<float>().value()[0], 0.55f);
  EXPECT_THAT(best_classes(even).value(), ElementsAre(0, 0)) << "a tie is the lowest class";
  const loom::Tensor biased = soft_vote({x, y}, {1, 3}).value();
  EXPECT_FLOAT_EQ(biased.values<float>().value()[0], 0.375f);
  EXPECT_THAT(best_classes(biased).value(), ElementsAre(1, 0));
}

// Two models, each of which knows one half of the classes; a judge can learn which one to trust.
TEST(Stack, LearnsWhomToBelieve) {
  constexpr int64_t kSamples = 400, kClasses = 4;
  const Rng rng(11, 2);
  std::vector<float> a(kSamples * kClasses), b = a;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < kSamples; ++i) {
    const int64_t label = rng.bits(static_cast<uint64_t>(i)) % 4;
    labels.push_back(label);
    for (int64_t c = 0; c < kClasses; ++c) {
      const auto at = static_cast<size_t>(i * kClasses + c);
      // Each answers its own classes correctly, and gives another of its classes for the others.
      const bool mine = label < 2;
      a[at] = mine ? (c == label ? 0.7f : 0.1f) : (c == label - 2 ? 0.85f : 0.05f);
      b[at] = mine ? (c == label + 2 ? 0.55f : 0.15f) : (c == label ? 0.7f : 0.1f);
    }
  }
  const std::vector<loom::Tensor> shares = {loom::Tensor::copy(a, {kSamples, kClasses}).value(),
                                            loom::Tensor::copy(b, {kSamples, kClasses}).value()};
  const auto accuracy = [&](const loom::Tensor& scores) {
    const std::vector<int64_t> votes = best_classes(scores).value();
    int64_t right = 0;
    for (size_t i = 0; i < votes.size(); ++i) right += votes[i] == labels[i] ? 1 : 0;
    return static_cast<double>(right) / kSamples;
  };
  EXPECT_LT(accuracy(soft_vote(shares).value()), 0.8);
  const loom::Network judge = stack(shares, labels, {.rounds = 100}).value();
  const loom::Tensor inputs = stack_inputs(shares).value();
  EXPECT_EQ(inputs.shape(), (loom::Shape{kSamples, 8}));
  EXPECT_GT(accuracy(judge.predict(inputs).value()), 0.99);
  const loom::Network again = stack(shares, labels, {.rounds = 100}).value();
  EXPECT_EQ(test::values_of(again, "(0, 0, 0, 0)/weight"),
            test::values_of(judge, "(0, 0, 0, 0)/weight"));
}

TEST(Ensemble, RefusesBadInputInOneLine) {
  const std::vector<float> four = {0, 1, 1, 0};
  const loom::Tensor square = loom::Tensor::copy(four, {2, 2}).value(),
                     flat = loom::Tensor::copy(four, {4}).value();
  const auto says = [](const auto& result) {
    return result.ok() ? std::string("no error") : result.error().str();
  };
  const std::pair<std::string, const char*> cases[] = {
      {says(complementary_pairs({})), "there are no masks"},
      {says(complementary_pairs({mask("1"), mask("11")})), "model 1 has 2 samples"},
      {says(complementary_pairs({Mask()})), "the masks are empty"},
      {says(complementary_pairs({mask("1")}, 2)), "at most 1"},
      {says(greedy_cover({})), "there are no masks"},
      {says(mask_similarity(mask("1"), mask("11"))), "1 and 2 samples"},
      {says(majority_vote({})), "no models"},
      {says(majority_vote({{0, 1}, {0}})), "model 1 says 1 classes, the first 2"},
      {says(majority_vote({{0, -1}})), "a class below 0"},
      {says(majority_vote({{0}, {1}}, {1})), "1 weights for 2 models"},
      {says(majority_vote({{0}, {1}}, {1, -1})), "must be 0 or more"},
      {says(majority_vote({{0}, {1}}, {0, 0})), "all weights are 0"},
      {says(soft_vote({square, flat})), "model 1 answers [4], the first [2, 2]"},
      {says(soft_vote({})), "no models"},
      {says(best_classes(flat)), "give [n, classes]"},
      {says(stack({square}, {0})), "1 labels for 2 samples"},
      {says(stack({square}, {0, 2})), "label 2 of sample 1 must be from 0 to 1"},
      {says(stack_inputs({flat})), "give [n, classes]"},
  };
  for (const auto& [votes, expected] : cases) {
    EXPECT_THAT(votes, HasSubstr(expected));
    EXPECT_EQ(votes.find('\n'), std::string::npos) << votes;
  }
}

}  // namespace
}  // namespace loom::core
