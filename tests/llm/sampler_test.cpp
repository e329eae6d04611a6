// The sampler on hand-made logits: which tokens each rule keeps, in which order rules apply, and
// that draws follow the probabilities and the seed.
#include "llm/sampling/sampler.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

namespace loom::core {
namespace {

using testing::HasSubstr;

const float kNan = std::nanf("");
const float kInf = INFINITY;

TokenId pick(const SamplerOptions& options, std::vector<float> logits,
             std::vector<TokenId> history = {}) {
  Result<Sampler> sampler = Sampler::create(options, static_cast<int64_t>(logits.size()));
  EXPECT_TRUE(sampler.ok());
  return sampler->next(logits, history);
}

// How often each token is drawn.
std::map<TokenId, int> draw(const SamplerOptions& options, const std::vector<float>& logits,
                            int draws) {
  Result<Sampler> sampler = Sampler::create(options, static_cast<int64_t>(logits.size()));
  EXPECT_TRUE(sampler.ok());
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[sampler->next(logits, {})];
  return counts;
}

std::set<TokenId> drawn(const SamplerOptions& options, const std::vector<float>& logits) {
  std::set<TokenId> tokens;
  for (const auto& [id, count] : draw(options, logits, 4000)) tokens.insert(id);
  return tokens;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargestLogits) {
  EXPECT_EQ(pick({}, {1, 5, 3}), 1);
  EXPECT_EQ(pick({}, {5, 1, 5}), 0);
  EXPECT_EQ(pick({}, {-1, -1, -1}), 0);
  EXPECT_EQ(pick({}, {kNan, 1, 2}), 2);
  EXPECT_EQ(pick({}, {kNan, kNan}), 0);
  EXPECT_EQ(pick({}, {-kInf, -kInf, -3}), 2);
  EXPECT_EQ(pick({}, {1, kInf, kInf}), 1);
}

struct Penalty {
  const char* name;
  std::vector<float> logits;
  std::vector<TokenId> history;
  float penalty;
  int64_t window;
  TokenId expected;
};

TEST(Sampler, PenaltyDividesPositiveAndMultipliesNegativeLogitsOfTheWindow) {
  const Penalty cases[] = {
      {"unseen tokens keep their logits", {4, 3}, {}, 2, 64, 0},
      {"a positive logit is divided", {4, 3}, {0}, 2, 64, 1},
      {"a negative logit is multiplied", {-1, -1.5f}, {0}, 2, 64, 1},
      {"a token seen twice counts once", {4, 1.5f}, {0, 0, 0}, 2, 64, 0},
      {"tokens before the window do not count", {4, 3, 0}, {0, 2}, 2, 1, 0},
      {"a window of 0 is all of the history", {4, 3, 0}, {0, 2, 2, 2}, 2, 0, 1},
      {"below 1 it encourages", {4, 3}, {1}, 0.5f, 64, 1},
      {"ids outside the vocabulary are ignored", {4, 3}, {-1, 99}, 2, 64, 0},
  };
  for (const Penalty& c : cases) {
    SCOPED_TRACE(c.name);
    SamplerOptions options;
    options.repetition_penalty = c.penalty;
    options.repetition_window = c.window;
    EXPECT_EQ(pick(options, c.logits, c.history), c.expected);
  }
}

TEST(Sampler, PenaltyAppliesAnewToEveryDraw) {
  SamplerOptions options;
  options.repetition_penalty = 2;
  Result<Sampler> sampler = Sampler::create(options, 2);
  const std::vector<float> logits = {4, 3};
  const std::vector<TokenId> history = {0};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(sampler->next(logits, history), 1);
  EXPECT_EQ(sampler->next(logits, {}), 0);
}

SamplerOptions with(float temperature, int64_t top_k, float top_p, float min_p) {
  SamplerOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  options.min_p = min_p;
  return options;
}

TEST(Sampler, RulesKeepTheTokensTheyShould) {
  // Probabilities at temperature 1: 0.4, 0.3, 0.2, 0.1, in the order 2, 0, 3, 1.
  const std::vector<float> logits = {std::log(3.f), std::log(1.f), std::log(4.f), std::log(2.f)};
  struct Case {
    const char* name;
    SamplerOptions options;
    std::set<TokenId> kept;
  };
  const Case cases[] = {
      {"nothing cut", with(1, 0, 1, 0), {0, 1, 2, 3}},
      {"top-k", with(1, 2, 1, 0), {0, 2}},
      {"top-k of one", with(1, 1, 1, 0), {2}},
      {"top-k beyond the vocabulary", with(1, 99, 1, 0), {0, 1, 2, 3}},
      {"top-p keeps the token that crosses", with(1, 0, 0.5f, 0), {0, 2}},
      {"top-p keeps at least one", with(1, 0, 0.01f, 0), {2}},
      {"top-p counts what top-k left", with(1, 3, 0.6f, 0), {0, 2}},
      {"min-p is a share of the best", with(1, 0, 1, 0.45f), {0, 2, 3}},
      {"min-p of one", with(1, 0, 1, 1), {2}},
      {"temperature comes before top-p", with(0.1f, 0, 0.9f, 0), {2}},
      {"temperature comes before min-p", with(4, 0, 1, 0.6f), {0, 1, 2, 3}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_EQ(drawn(c.options, logits), c.kept);
  }
}

TEST(Sampler, TiesAreBrokenByTheSmallerId) {
  EXPECT_EQ(drawn(with(1, 2, 1, 0), {1, 1, 1, 1}), (std::set<TokenId>{0, 1}));
  EXPECT_EQ(drawn(with(1, 0, 0.5f, 0), {1, 1, 1, 1}), (std::set<TokenId>{0, 1}));
}

TEST(Sampler, ImpossibleTokensAreNeverDrawn) {
  EXPECT_EQ(drawn(with(1, 0, 1, 0), {0, -kInf, kNan, 0, -1000}), (std::set<TokenId>{0, 3}));
  EXPECT_EQ(drawn(with(1, 0, 1, 0), {kInf, 0, kInf}), (std::set<TokenId>{0, 2}));
  EXPECT_EQ(drawn(with(1e-30f, 0, 1, 0), {1, 2, 3}), (std::set<TokenId>{2}));
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  // Chi-square of 15 degrees of freedom: 37.7 is passed once in 1000 honest samplers.
  std::vector<float> logits;
  for (int i = 0; i < 16; ++i) logits.push_back(0.2f * static_cast<float>((i * 7) % 16));
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  constexpr int kDraws = 40000;
  const auto counts = draw(with(1, 0, 1, 0), logits, kDraws);
  double chi_square = 0;
  for (int i = 0; i < 16; ++i) {
    const double expected = kDraws * std::exp(static_cast<double>(logits[i])) / total;
    const double seen = counts.count(i) > 0 ? counts.at(i) : 0;
    chi_square += (seen - expected) * (seen - expected) / expected;
  }
  EXPECT_LT(chi_square, 37.7);
}

TEST(Sampler, TheSeedAndTheNumberOfDrawsDecide) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 13) * 0.3f;
  const auto stream = [&](uint64_t seed) {
    SamplerOptions options = with(0.9f, 0, 0.95f, 0);
    options.seed = seed;
    Result<Sampler> sampler = Sampler::create(options, 1000);
    std::vector<TokenId> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(sampler->next(logits, {}));
    return ids;
  };
  EXPECT_EQ(stream(7), stream(7));
  EXPECT_NE(stream(7), stream(8));
}

// Golden, computed by a simple separate program (sort all, sum, walk) with the same Philox.
TEST(Sampler, DrawsAreTheSameOnEveryMachine) {
  std::vector<float> logits(5000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 7919) % 5000) * 0.002f;
  SamplerOptions options = with(0.8f, 0, 0.9f, 0.01f);
  options.seed = 42;
  Result<Sampler> sampler = Sampler::create(options, 5000);
  std::vector<TokenId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(sampler->next(logits, {}));
  EXPECT_EQ(ids, (std::vector<TokenId>{2362, 2480, 4945, 3388, 4940, 1014, 1211, 2076}));
}

// Lazy sorting must not change the draw.
TEST(Sampler, AllTokensKeptByTopKDrawAsWithoutIt) {
  std::vector<float> logits(700);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>((i * 7919) % 700) * 0.001f;
  SamplerOptions lazy = with(1, 0, 1, 0), sorted = with(1, 699, 1, 0);
  logits[(5 * 700 + 0) % 700] = -1000;  // what top-k leaves out has no probability
  Result<Sampler> a = Sampler::create(lazy, 700), b = Sampler::create(sorted, 700);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(a->next(logits, {}), b->next(logits, {}));
}

TEST(Sampler, BadOptionsAreRefusedInOneLine) {
  struct Case {
    const char* field;
    SamplerOptions options;
  };
  std::vector<Case> cases;
  const auto add = [&](const char* field, auto member, auto value) {
    cases.push_back({field, {}});
    cases.back().options.*member = value;
  };
  for (const float bad : {-1.0f, kNan, kInf}) add("temperature", &SamplerOptions::temperature, bad);
  for (const float bad : {0.0f, 1.5f, kNan}) add("top_p", &SamplerOptions::top_p, bad);
  for (const float bad : {-0.1f, 1.5f, kNan}) add("min_p", &SamplerOptions::min_p, bad);
  for (const float bad : {0.0f, -1.0f, kNan, kInf})
    add("repetition_penalty", &SamplerOptions::repetition_penalty, bad);
  add("top_k", &SamplerOptions::top_k, -1);
  add("repetition_window", &SamplerOptions::repetition_window, -1);
  for (const Case& c : cases) {
    const Result<Sampler> sampler = Sampler::create(c.options, 4);
    ASSERT_FALSE(sampler.ok()) << c.field;
    EXPECT_EQ(sampler.error().code, Code::invalid_argument);
    EXPECT_THAT(sampler.error().str(), HasSubstr(c.field));
  }
  EXPECT_FALSE(Sampler::create({}, 0).ok());
}

}  // namespace
}  // namespace loom::core
