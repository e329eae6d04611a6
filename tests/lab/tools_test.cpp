// Tools of the engine besides running: hashes of logits, perplexity, the self-check, inspection of
// a checkpoint.
#include <gmock/gmock.h>

#include <cmath>

#include "api/engine/impl.hpp"
#include "convert/checkpoint.hpp"
#include "lab/logits_hash.hpp"
#include "lab/self_check.hpp"
#include "llm/sessions/perplexity.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using testing::HasSubstr;

const std::string kStoriesFile = loom_test::source_path("tests/data/stories");

LlmSession tiny_session(LlmSessionOptions options = {}) {
  static const Result<Engine> engine = Engine::create({.threads = 2});
  static const Result<Model> model = Model::random(*engine, "tiny", loom::DType::float32, 1);
  Result<LlmSession> session = make_session(*model, options);
  EXPECT_TRUE(session.ok());
  return std::move(*session);
}

TEST(BitsHash, IsXxh3OfTheBitsInTheirOrder) {
  BitsHash none;
  EXPECT_EQ(none.hex(), "99aa06d3014798d86001c324468d497f");  // XXH3-128 of nothing
  const std::vector<float> a = {1, 2}, b = {3}, all = {1, 2, 3}, zero = {0}, minus = {-0.0f};
  BitsHash pieces, whole, plus_zero, minus_zero;
  pieces.add(a);
  pieces.add(b);
  whole.add(all);
  plus_zero.add(zero);
  minus_zero.add(minus);
  EXPECT_EQ(pieces.hex(), whole.hex());
  EXPECT_EQ(whole.hex().size(), 32u);
  EXPECT_NE(plus_zero.hex(), minus_zero.hex());
}

TEST(BitsHash, OfASessionDoesNotDependOnThePieces) {
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < 40; ++i) ids.push_back(prompt_token(i, 256));
  std::vector<std::string> hashes;
  for (const int64_t chunk : {1, 7, 64}) {
    LlmSessionOptions options;
    options.chunk = chunk;
    options.head_rows = chunk;
    LlmSession session = tiny_session(options);
    const Result<std::string> hash = hash_logits(session, ids);
    ASSERT_TRUE(hash.ok());
    hashes.push_back(*hash);
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

TEST(Tokens, OfBenchmarksAreThoseOfThePeer) {
  EXPECT_EQ(prompt_token(0, 49152), 13);
  EXPECT_EQ(prompt_token(112, 49152), (112 * 7919 + 13) % 49152);
  EXPECT_EQ(decode_token(56, 49152), (56 * 104729 + 7) % 49152);
  EXPECT_LT(decode_token(1 << 24, 1000), 1000);
}

TEST(NegativeLogLikelihood, IsMinusLogSoftmax) {
  for (const int count : {1, 2, 7, 8, 9, 100, 1001}) {
    std::vector<float> logits;
    double sum = 0;
    for (int i = 0; i < count; ++i) {
      logits.push_back(static_cast<float>(std::sin(i * 3.7)) * 9);
      sum += std::exp(static_cast<double>(logits.back()));
    }
    for (const int target : {0, count - 1}) {
      const double expected = std::log(sum) - static_cast<double>(logits[target]);
      EXPECT_NEAR(negative_log_likelihood(logits, target), expected, 1e-6);
    }
  }
  const std::vector<float> sure = {1000, -1000};
  EXPECT_EQ(negative_log_likelihood(sure, 0), 0);
  EXPECT_NEAR(negative_log_likelihood(sure, 1), 2000, 1e-9);
}

// The definition, window by window, with one fresh session each.
TEST(Perplexity, TreatsEachWindowAsANewText) {
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < 50; ++i) ids.push_back(decode_token(i, 256));
  PerplexityOptions options;
  options.window = 16;
  LlmSession session = tiny_session();
  const Result<Perplexity> measured = measure_perplexity(session, ids, options);
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(measured->predictions, 48);
  double sum = 0;
  for (size_t begin = 0; begin + 16 < ids.size(); begin += 16) {
    LlmSession fresh = tiny_session();
    for (size_t i = begin; i < begin + 16; ++i) {
      ASSERT_TRUE(fresh.feed({&ids[i], 1}).ok());
      sum += negative_log_likelihood(fresh.logits(), ids[i + 1]);
    }
  }
  EXPECT_EQ(measured->nats_per_token, sum / 48);
  EXPECT_NEAR(measured->perplexity, std::exp(sum / 48), 1e-9 * measured->perplexity);
}

TEST(Perplexity, StopsAtTheLimitAndWhenToldTo) {
  const std::vector<TokenId> ids(40, 5);
  PerplexityOptions options;
  options.window = 8;
  options.limit = 20;
  LlmSession session = tiny_session();
  EXPECT_EQ(measure_perplexity(session, ids, options)->predictions, 16);
  options.progress = [](int64_t done, int64_t total) {
    EXPECT_EQ(total, 16);
    return done < 3;
  };
  EXPECT_EQ(measure_perplexity(session, ids, options).error().code, Code::cancelled);
}

TEST(Perplexity, NeedsOneWindowOfTokens) {
  LlmSession session = tiny_session();
  PerplexityOptions options;
  options.window = 16;
  const std::vector<TokenId> enough(17, 1), less(16, 1);
  EXPECT_TRUE(measure_perplexity(session, enough, options).ok());
  EXPECT_THAT(measure_perplexity(session, less, options).error().str(), HasSubstr("17 tokens"));
  EXPECT_FALSE(measure_perplexity(session, {}, options).ok());
  options.limit = 15;
  EXPECT_THAT(measure_perplexity(session, enough, options).error().str(), HasSubstr("limit of 15"));
  options.window = 0;
  EXPECT_FALSE(measure_perplexity(session, enough, options).ok());
}

TEST(SelfCheck, PassesOnEveryInstructionSetHere) {
  const Result<std::vector<SelfCheck>> checks = self_check();
  ASSERT_TRUE(checks.ok()) << checks.error().str();
  EXPECT_EQ(checks->size(), available_isas().size());
  for (const SelfCheck& check : *checks) {
    EXPECT_THAT(check.failed, testing::IsEmpty()) << isa_name(check.isa);
    EXPECT_GT(check.checked, static_cast<int>(dtype_table().size()));
  }
}

TEST(Checkpoint, IsReadWithoutItsWeights) {
  const Result<Checkpoint> c = Checkpoint::open(kStoriesFile);
  ASSERT_TRUE(c.ok()) << c.error().str();
  EXPECT_EQ(c->config.num_layers, 4);
  EXPECT_EQ(c->tensors.tensors().size(), 38u);
  ASSERT_TRUE(c->tokenizer.has_value());
  EXPECT_EQ(c->tokenizer->vocab_size(), 1024);
  EXPECT_TRUE(c->has_chat_template && c->chat_template_readable);
}

TEST(Checkpoint, AdvisesWhereTheFolderIsNone) {
  EXPECT_EQ(check_model_folder(kStoriesFile + "/model.safetensors").error().code, Code::bad_file);
  EXPECT_THAT(check_model_folder("x/y.gguf").error().str(), HasSubstr("no such file or folder"));
  EXPECT_THAT(load_tokenizer("/nowhere").error().str(), HasSubstr("tokenizer.json"));
  EXPECT_TRUE(load_tokenizer(kStoriesFile + "/tokenizer.json").ok());
}

}  // namespace
}  // namespace loom::core
