// Sampling by the ops topk and draw, as on devices, compared with the sampler: the same tokens, the
// right frequencies, edge cases, errors.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "backend/reference/reference.hpp"
#include "base/numbers/rng.hpp"
#include "llm/sampling/sampler.hpp"
#include "llm/stories.hpp"
#include "ops/ops.hpp"

namespace loom::core {
namespace {

using testing::HasSubstr;

SamplerOptions sampling(float temperature, int64_t top_k, float top_p = 1.0f, float min_p = 0.0f,
                        uint64_t seed = 0) {
  SamplerOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  options.min_p = min_p;
  options.seed = seed;
  return options;
}

// Tokens index, index + 1, .. as the ops of the reference draw them, all from the same logits.
std::vector<TokenId> by_ops(const SamplerOptions& o, std::vector<float> logits, int64_t count,
                            uint64_t index = 0) {
  const auto vocab = static_cast<int64_t>(logits.size());
  const int64_t k = std::min(o.top_k, vocab);
  std::vector<float> values(static_cast<size_t>(k));
  std::vector<int32_t> ids(values.size());
  std::vector<TokenId> next(static_cast<size_t>(count));
  const auto i32 = [](std::vector<int32_t>& v, Shape shape) {
    return Tensor{DType::i32, Layout::plain, shape, static_cast<int64_t>(v.size()),
                  reinterpret_cast<std::byte*>(v.data())};
  };
  const Tensor best = f32_matrix(values.data(), 1, k);
  const Tensor all_ids = i32(ids, Shape{1, k});
  reference_ops().topk(TopkArgs{f32_matrix(logits.data(), 1, vocab), best, all_ids}, Lane{});
  // The same candidates in each row.
  Tensor rows = best, row_ids = all_ids;
  rows.shape = row_ids.shape = Shape{count, k};
  rows.row_stride = row_ids.row_stride = 0;
  reference_ops().sample(SampleArgs{rows, row_ids, i32(next, Shape{count}), o.temperature, o.top_p,
                                    o.min_p, o.seed, index},
                         Lane{});
  return next;
}

std::vector<TokenId> by_sampler(const SamplerOptions& options, const std::vector<float>& logits,
                                int64_t count) {
  Result<Sampler> sampler = Sampler::create(options, static_cast<int64_t>(logits.size()));
  EXPECT_TRUE(sampler.ok());
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(sampler->next(logits, {}));
  return tokens;
}

std::vector<float> some_logits(uint64_t seed, int64_t vocab, float spread) {
  const Rng rng(seed, 1);
  std::vector<float> logits(static_cast<size_t>(vocab));
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = (rng.uniform(2 * i) + rng.uniform(2 * i + 1) - 1.0f) * spread;
  return logits;
}

TEST(DeviceSampling, TakesTheTokensOfTheSampler) {
  constexpr int64_t kDraws = 30;
  int64_t drawn = 0;
  uint64_t seed = 0;
  for (const int64_t top_k : {1, 2, 5, 40, 100, 256}) {
    for (const float temperature : {0.1f, 0.7f, 0.8f, 1.0f, 1.5f, 10.0f}) {
      for (const float top_p : {1.0f, 0.95f, 0.5f, 1e-3f}) {
        for (const float min_p : {0.0f, 0.02f, 0.3f}) {
          for (const float spread : {0.5f, 4.0f, 20.0f}) {
            const SamplerOptions o = sampling(temperature, top_k, top_p, min_p, ++seed);
            const std::vector<float> logits = some_logits(seed, 1000, spread);
            drawn += kDraws;
            EXPECT_EQ(by_ops(o, logits, kDraws), by_sampler(o, logits, kDraws))
                << "top_k " << top_k << " at " << temperature << ", top_p " << top_p << ", min_p "
                << min_p;
          }
        }
      }
    }
  }
  EXPECT_EQ(drawn, 38880);
}

TEST(DeviceSampling, DrawsFollowTheProbabilities) {
  // Chi-square of 15 degrees of freedom: 37.7 is passed once in 1000 honest samplers.
  const std::vector<float> logits = some_logits(5, 400, 6.0f);
  const SamplerOptions options = sampling(0.9f, 16, 1.0f, 0.0f, 11);
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  constexpr int64_t kDraws = 20000;
  std::map<TokenId, double> seen;
  for (const TokenId id : by_ops(options, logits, kDraws)) seen[id] += 1;
  double total = 0, counted = 0, chi_square = 0;
  const auto weight = [&](size_t i) { return std::exp(static_cast<double>(logits[i]) / 0.9); };
  for (size_t i = 0; i < 16; ++i) total += weight(order[i]);
  for (size_t i = 0; i < 16; ++i) {
    const double expected = kDraws * weight(order[i]) / total;
    const double got = seen[static_cast<TokenId>(order[i])];
    counted += got;
    chi_square += (got - expected) * (got - expected) / expected;
  }
  EXPECT_EQ(counted, kDraws);
  EXPECT_LT(chi_square, 37.7);
  EXPECT_GT(chi_square, 3.5) << "closer than chance allows";
}

TEST(DeviceSampling, KeepsTheTokensItShould) {
  struct Case {
    const char* name;
    SamplerOptions options;
    std::vector<float> logits;
    std::set<TokenId> kept;
  };
  const Case cases[] = {
      {"one candidate", sampling(1, 1), {1, 3, 2}, {1}},
      {"all candidates", sampling(1, 99), {1, 3, 2}, {0, 1, 2}},
      {"all equal", sampling(1, 256), {2, 2, 2, 2}, {0, 1, 2, 3}},
      {"half of four that are equal", sampling(1, 4, 0.5f), {2, 2, 2, 2}, {0, 1}},
      {"hardly more than a third", sampling(1, 3, 0.33333334f), {2, 2, 2}, {0, 1}},
      {"a little more than half", sampling(1, 4, 0.500001f), {2, 2, 2, 2}, {0, 1, 2}},
      {"top_p keeps one", sampling(1, 4, 1e-30f), {1, 3, 2, 3}, {1}},
      {"min_p of one", sampling(1, 4, 1.0f, 1.0f), {3, 2.9f, 3, 1}, {0, 2}},
      {"min_p", sampling(1, 4, 1.0f, 0.3f), {0, 1, 0.1f, -1}, {0, 1, 2}},
      {"a temperature near 0", sampling(1.2e-38f, 3), {1, 2, 1.9999f}, {1}},
      {"the hottest", sampling(3e38f, 3), {1, -200, 100}, {0, 1, 2}},
      {"-inf is never drawn", sampling(1, 4), {-INFINITY, 1, -INFINITY, 1}, {1, 3}},
      {"NaN is never drawn", sampling(1, 4), {NAN, 1, NAN, 1}, {1, 3}},
      {"inf always is", sampling(1, 4), {INFINITY, 1, 3e38f, INFINITY}, {0, 3}},
      {"nothing but -inf", sampling(1, 2), {-INFINITY, -INFINITY, -INFINITY}, {0, 1}},
      {"nothing but NaN", sampling(1, 2), {NAN, NAN, NAN}, {0, 1}},
      {"differences beyond floats", sampling(1, 3), {3e38f, -3e38f, 3e38f}, {0, 2}},
      {"no weight, no draw", sampling(1, 3), {0, -40, 0}, {0, 2}},
  };
  for (const Case& c : cases) {
    const std::vector<TokenId> drawn = by_ops(c.options, c.logits, 3000);
    EXPECT_EQ(std::set<TokenId>(drawn.begin(), drawn.end()), c.kept) << c.name;
  }
}

// Numbers within 2^-24 of a half, found by trying.
TEST(DeviceSampling, AHalfBelongsToTheSecondOfTwo) {
  const uint64_t above = 9297664, below = 16724226;
  ASSERT_EQ(philox(0, 0, above)[0], 0x80000025U);
  ASSERT_EQ(philox(0, 0, below)[0], 0x7fffffa9U);
  EXPECT_EQ(by_ops(sampling(1, 2), {5, 5}, 1, above), std::vector<TokenId>{1});
  EXPECT_EQ(by_ops(sampling(1, 2), {5, 5}, 1, below), std::vector<TokenId>{0});
}

TEST(DeviceSampling, WeightsAreRoundedToTheNearest) {
  const uint64_t last = 38471471;
  ASSERT_EQ(philox(0, 0, last)[0], 0xffffffecU);
  std::vector<float> logits(256, -15.53692f);  // exp of it is 3/4 of 2^-22
  logits[0] = 0;
  EXPECT_EQ(by_ops(sampling(1, 256), logits, 1, last), std::vector<TokenId>{255});
  for (size_t i = 1; i < logits.size(); ++i) logits[i] = -16.63553f;  // 1/4
  EXPECT_EQ(by_ops(sampling(1, 256), logits, 1, last), std::vector<TokenId>{0});
}

TEST(DeviceSampling, TheSamplerSaysWhereItCan) {
  struct Case {
    const char* name;
    SamplerOptions options;
    bool can;
  };
  Case cases[] = {
      {"greedy", {}, true},
      {"greedy, whatever top_k", sampling(0, 1000), true},
      {"top_k", sampling(0.8f, 40), true},
      {"the largest top_k", sampling(0.8f, 256), true},
      {"a larger top_k", sampling(0.8f, 257), false},
      {"all tokens", sampling(0.8f, 0), false},
      {"a subnormal temperature", sampling(1e-40f, 40), false},
      {"a penalty", sampling(0.8f, 40), false},
      {"a penalty, greedy", {}, false},
  };
  cases[7].options.repetition_penalty = cases[8].options.repetition_penalty = 1.1f;
  for (const Case& c : cases) {
    const Result<Sampler> sampler = Sampler::create(c.options, 1000);
    ASSERT_TRUE(sampler.ok()) << c.name;
    EXPECT_EQ(sampler->on_device().has_value(), c.can) << c.name;
  }
}

TEST(DeviceSampling, TokensDrawnElsewhereCount) {
  const std::vector<float> logits = some_logits(8, 300, 3.0f);
  const SamplerOptions options = sampling(1, 40, 1.0f, 0.0f, 21);
  const std::vector<TokenId> expected = by_sampler(options, logits, 30);
  Result<Sampler> sampler = Sampler::create(options, 300);
  ASSERT_TRUE(sampler.ok());
  EXPECT_EQ(sampler->next(logits, {}), expected[0]);
  const std::optional<DeviceSampling> how = sampler->on_device();
  ASSERT_TRUE(how.has_value());
  EXPECT_EQ(how->index, 1u);
  const std::vector<TokenId> found = by_ops(options, logits, 16, how->index);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin() + 1));
  sampler->advance(16);
  EXPECT_EQ(sampler->next(logits, {}), expected[17]);
  sampler->advance(-4);
  EXPECT_EQ(sampler->next(logits, {}), expected[14]);
}

TEST(DeviceSampling, ASessionDrawsAmongTheMostLikelyWhereverItComputes) {
  const LanguageModel& model = test::stories();
  LlmSession drawing = test::session(model), feeding = test::session(model);
  const SamplerOptions options = sampling(0.8f, 40, 0.95f, 0.01f, 3);
  Result<Sampler> sampler = Sampler::create(options, model.config().vocab_size);
  ASSERT_TRUE(sampler.ok());
  TokenId id = test::encode(model, "Once").front();
  std::vector<TokenId> found, expected;
  ASSERT_TRUE(drawing.feed_sampled(id, 16, *sampler->on_device(), found).ok());
  for (int i = 0; i < 16; ++i) {
    ASSERT_TRUE(feeding.feed({&id, 1}).ok());
    expected.push_back(id = sampler->next(feeding.logits(), {}));
  }
  EXPECT_EQ(found, expected);
  EXPECT_EQ(drawing.position(), 16);
  EXPECT_TRUE(std::equal(drawing.logits().begin(), drawing.logits().end(), feeding.logits().begin(),
                         feeding.logits().end()));
}

TEST(DeviceSampling, ASessionRefusesWhatItCannotDraw) {
  LlmSession session = test::session(test::stories());
  struct Case {
    const char* message;
    TokenId id;
    int64_t count;
    DeviceSampling how;
  };
  const Case cases[] = {
      {"outside the vocabulary", -1, 1, {}},
      {"there is room for 64", 1, 65, {}},
      {"there is room for 64", 1, 0, {}},
      {"among 1 to 256 tokens; top_k is 257", 1, 1, {1.0f, 257, 1.0f, 0.0f, 0, 0}},
      {"among 1 to 256 tokens; top_k is 0", 1, 1, {1.0f, 0, 1.0f, 0.0f, 0, 0}},
  };
  for (const Case& c : cases) {
    std::vector<TokenId> found;
    const Status status = session.feed_sampled(c.id, c.count, c.how, found);
    ASSERT_FALSE(status.ok()) << c.message;
    EXPECT_EQ(status.error().code, Code::out_of_range);
    EXPECT_THAT(status.error().str(), HasSubstr(c.message));
    EXPECT_TRUE(found.empty());
    EXPECT_EQ(session.position(), 0);
  }
}

}  // namespace
}  // namespace loom::core
