// Speculative decoding gives the tokens that plain decoding gives, whoever guesses, at any
// temperature, and leaves the session as plain decoding leaves it.
#include <gmock/gmock.h>

#include <random>

#include "llm/stories.hpp"

namespace loom::core {
namespace {

std::vector<TokenId> random_prompt(std::mt19937_64& engine, int64_t vocab) {
  std::vector<TokenId> out;
  const size_t length = 1 + engine() % 40;
  // Repetitions give look-up something to find.
  while (out.size() < length) {
    const bool again = !out.empty() && engine() % 3 == 0;
    out.push_back(again ? out[engine() % out.size()]
                        : static_cast<TokenId>(engine() % static_cast<uint64_t>(vocab)));
  }
  return out;
}

GenerateOptions random_options(std::mt19937_64& engine, int i) {
  GenerateOptions o;
  o.max_tokens = 1 + static_cast<int64_t>(engine() % 40);
  o.guesses = 1 + static_cast<int64_t>(engine() % 9);
  o.sampler.temperature = static_cast<float>(i % 2);
  o.sampler.seed = engine();
  o.ignore_eos = i % 3 == 0;
  if (i % 4 == 1) o.sampler.repetition_penalty = 1.3f;
  if (i % 5 == 1) o.sampler.dry.multiplier = 0.8f;
  if (i % 6 == 1) o.sampler.mirostat = 2;
  if (i % 7 == 1) o.sampler.xtc_probability = 0.5f;
  if (i % 8 == 1) o.stop = {"the"};
  if (i % 9 == 1) o.grammar = "root ::= ([a-z]{1,7} [ .,])*";
  if (i % 10 == 1) o.sampler.banned_strings = {"e ", "an"};
  o.logprobs = i % 2 == 1;
  return o;
}

TEST(Speculation, GivesTheTokensOfPlainDecoding) {
  const LanguageModel& model = test::stories();
  // A model in another number type guesses well, but not always.
  Result<LanguageModel> other =
      load_language_model(test::kStories, {DType::q4_0, {}}, test::pool());
  ASSERT_TRUE(other.ok());
  std::mt19937_64 engine(7);
  int64_t guessed = 0, accepted = 0;
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    GenerateOptions options = random_options(engine, i);
    const std::vector<TokenId> prompt = random_prompt(engine, model.config().vocab_size);
    LlmSessionOptions how;
    how.context = 90;
    how.chunk = 1 + static_cast<int64_t>(engine() % 20);
    LlmSession plain_session = test::session(model, how), session = test::session(model, how);
    LlmSession draft = test::session(*other, how);
    const Result<Generation> plain = generate(plain_session, model, prompt, options);
    options.lookup = i % 3 != 1;
    const Result<Generation> fast =
        generate(session, model, prompt, options, {}, i % 3 != 0 ? &draft : nullptr);
    ASSERT_EQ(plain.ok(), fast.ok()) << (plain.ok() ? fast : plain).error().str();
    if (!plain.ok()) continue;
    EXPECT_EQ(fast->token_ids, plain->token_ids);
    EXPECT_EQ(fast->text, plain->text);
    EXPECT_EQ(fast->logprobs, plain->logprobs);
    EXPECT_EQ(fast->stop, plain->stop);
    EXPECT_EQ(fast->decode_steps, plain->decode_steps);
    EXPECT_EQ(session.position(), plain_session.position());
    EXPECT_TRUE(std::ranges::equal(session.fed(), plain_session.fed()));
    EXPECT_TRUE(std::ranges::equal(session.logits(), plain_session.logits()));
    guessed += fast->guessed;
    accepted += fast->accepted;
  }
  RecordProperty("guessed", static_cast<int>(guessed));
  RecordProperty("accepted", static_cast<int>(accepted));
  EXPECT_GT(accepted, 300);
  EXPECT_LT(accepted, guessed);
}

TEST(Speculation, ReadsLessOftenThanItWrites) {
  const LanguageModel& model = test::stories();
  LlmSession session = test::session(model), draft = test::session(model);
  GenerateOptions options;
  options.max_tokens = 60;
  const std::vector<TokenId> prompt = test::encode(model, "Once upon a time");
  const Result<Generation> text = generate(session, model, prompt, options, {}, &draft);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->accepted, text->guessed) << "the model guesses what it draws";
  EXPECT_LT(text->passes * 7, text->decode_steps + 7);
}

TEST(Speculation, RefusesAnotherVocabulary) {
  Result<DecoderConfig> config = shape_config("tiny");
  ASSERT_TRUE(config.ok());
  Result<LanguageModel> other = LanguageModel::random(*config, DType::q8_0, 3, test::pool());
  ASSERT_TRUE(other.ok());
  LlmSession session = test::session(test::stories()), draft = test::session(*other);
  const std::vector<TokenId> prompt = {5};
  GenerateOptions options;
  EXPECT_THAT(generate(session, test::stories(), prompt, options, {}, &draft).error().message,
              testing::HasSubstr("the same vocabulary"));
  options.lookup = true;
  options.guesses = 65;
  EXPECT_THAT(generate(session, test::stories(), prompt, options).error().message,
              testing::HasSubstr("guesses must be from 1 to 64"));
}

}  // namespace
}  // namespace loom::core
