// Speculative decoding gives the tokens of plain decoding, with any draft, at any temperature, and
// leaves the session in the same state.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "llm/stories.hpp"
#include "loom/lookup.hpp"
#include "support/paths.hpp"

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
  o.guess_chance = static_cast<float>(engine() % 3) / 2;
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
  options.guess_chance = 0;
  const std::vector<TokenId> prompt = test::encode(model, "Once upon a time");
  const Result<Generation> text = generate(session, model, prompt, options, {}, &draft);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->accepted, text->guessed) << "the model guesses what it draws";
  EXPECT_LT(text->passes * 7, text->decode_steps + 7);
}

// Texts of the model at temperature 1, one after the other, from typical beginnings of its stories.
const std::string kBeginnings[] = {"Once upon a time", "Tom had a red",   "Lily and her",
                                   "One day, a",       "There was a big", "The little"};
std::vector<TokenId> written_by(const LanguageModel& model, int texts, uint64_t seed) {
  std::vector<TokenId> all;
  ThreadPool one(1);
  LlmSession session = *LlmSession::create(model, cpu_ops(best_isa()), one, {});
  for (int i = 0; i < texts; ++i) {
    GenerateOptions options;
    options.max_tokens = 200;
    options.sampler.temperature = 1.0f;
    options.sampler.seed = seed + static_cast<uint64_t>(i);
    const std::vector<TokenId> prompt = test::encode(model, kBeginnings[i % 6]);
    session.rewind(0);
    const Result<Generation> text = generate(session, model, prompt, options);
    EXPECT_TRUE(text.ok());
    all.insert(all.end(), prompt.begin(), prompt.end());
    all.insert(all.end(), text->token_ids.begin(), text->token_ids.end());
    all.push_back(0);
  }
  return all;
}

struct Contest {
  int64_t tokens = 0, guessed = 0, accepted = 0;
  double plain = 0, fast = 0;
};

// LOOM_GUESSES: tokens that are guessed at a time.
int64_t guesses_of_contest() {
  const char* setting = std::getenv("LOOM_GUESSES");
  return setting != nullptr ? std::atoi(setting) : 6;
}

// Processor time of this process, independent of other load.
double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

// The source of drafts: a lookup text, or a smaller model.
struct Guessing {
  const LookupText* text = nullptr;
  LlmSession* draft = nullptr;
};

// One prompt, without guesses and with some, in turn.
void contest(const LanguageModel& model, const Guessing& guessing, LlmSession& session,
             std::mt19937_64& engine, float temperature, Contest& sum) {
  std::vector<TokenId> prompt = written_by(model, 1, engine());
  prompt.resize(2 + engine() % std::min<size_t>(prompt.size() - 1, 30));
  GenerateOptions options;
  options.max_tokens = 120;
  options.sampler.temperature = temperature;
  options.sampler.seed = engine();
  const auto timed = [&](double& seconds, LlmSession* draft) {
    session.rewind(0);
    if (draft != nullptr) draft->rewind(0);
    const double begin = processor_seconds();
    Result<Generation> written = generate(session, model, prompt, options, {}, draft);
    seconds += processor_seconds() - begin;
    return written;
  };
  const Result<Generation> plain = timed(sum.plain, nullptr);
  options.lookup_text = guessing.text;
  options.guesses = guesses_of_contest();
  const Result<Generation> fast = timed(sum.fast, guessing.draft);
  ASSERT_TRUE(plain.ok() && fast.ok());
  ASSERT_EQ(fast->token_ids, plain->token_ids);
  ASSERT_EQ(fast->text, plain->text);
  ASSERT_EQ(fast->stop, plain->stop);
  sum.tokens += static_cast<int64_t>(plain->token_ids.size());
  sum.guessed += fast->guessed;
  sum.accepted += fast->accepted;
}

void hold_contests(const LanguageModel& model, const Guessing& guessing) {
  const char* setting = std::getenv("LOOM_PROMPTS");
  const int prompts = setting != nullptr ? std::atoi(setting) : 24;
  ThreadPool one(1);
  LlmSession session = *LlmSession::create(model, cpu_ops(best_isa()), one, {});
  std::mt19937_64 engine(11);
  for (const float temperature : {0.0f, 1.0f}) {
    Contest sum;
    for (int i = 0; i < prompts / 2; ++i) {
      contest(model, guessing, session, engine, temperature, sum);
      if (testing::Test::HasFatalFailure()) return;
    }
    std::fputs(cat("temperature ", temperature, ": ", prompts / 2, " prompts, ", sum.tokens,
                   " tokens the same; ", sum.accepted, " of ", sum.guessed, " guesses right, ",
                   static_cast<double>(static_cast<int64_t>(sum.plain / sum.fast * 100)) / 100,
                   " x as fast\n")
                   .c_str(),
               stdout);
    EXPECT_GT(sum.accepted, sum.guessed / 10);
  }
}

// LOOM_DTYPE: of the weights that write.
LanguageModel model_of_contest() {
  const char* name = std::getenv("LOOM_DTYPE");
  const Result<DType> dtype = parse_dtype(name != nullptr ? name : "q8_0");
  EXPECT_TRUE(dtype.ok());
  Result<LanguageModel> model =
      load_language_model(test::kStories, {dtype.value_or(DType::q8_0), {}}, test::pool());
  EXPECT_TRUE(model.ok());
  return std::move(*model);
}

// By hand: LOOM_PROMPTS=1000 build/dev/tests/test_llm --gtest_filter='*WritesTheSame*'
TEST(Speculation, WritesTheSameWithGuessesOfATextThatTheModelWrote) {
  const LanguageModel model = model_of_contest();
  const LookupText text(written_by(model, std::getenv("LOOM_PROMPTS") != nullptr ? 1500 : 100, 1));
  hold_contests(model, {&text, nullptr});
}

TEST(Speculation, WritesTheSameWithGuessesOfASmallerModel) {
  const LanguageModel model = model_of_contest();
  Result<LanguageModel> small = load_language_model(
      loom_test::source_path("models/stories-draft.entity"), {DType::q8_0, {}}, test::pool());
  ASSERT_TRUE(small.ok()) << small.error().str();
  ThreadPool one(1);
  LlmSession draft = *LlmSession::create(*small, cpu_ops(best_isa()), one, {});
  hold_contests(model, {nullptr, &draft});
}

TEST(LookupTexts, KnowWhatFollowedMostOften) {
  const std::vector<TokenId> text = {1, 2, 3, 1, 2, 4, 1, 2, 4, 9, 2, 5};
  const LookupText lookup(text);
  const auto next = [&](std::vector<TokenId> history, double share = 0.0) {
    return lookup.next(history, share);
  };
  EXPECT_EQ(next({1, 2}), 4);
  EXPECT_EQ(next({7, 1, 2}), 4);  // the longest known suffix
  EXPECT_EQ(next({3, 1, 2}), 4);  // once
  EXPECT_EQ(next({9, 2}), 5);
  EXPECT_EQ(next({2}), 4);  // two of four
  EXPECT_EQ(next({2}, 0.6), -1);
  EXPECT_EQ(next({5}), -1);  // nothing followed
  EXPECT_EQ(next({77}), -1);
  EXPECT_EQ(next({}), -1);
  EXPECT_EQ(LookupText({}).next(text), -1);
}

// Draft tokens of another vocabulary are not tokens of the model.
TEST(LookupTexts, GuessNoTokenThatTheModelHasNot) {
  const LanguageModel& model = test::stories();
  std::vector<TokenId> prompt = test::encode(model, "Once upon");
  std::vector<TokenId> strange;
  for (int i = 0; i < 50; ++i) {
    strange.insert(strange.end(), prompt.begin(), prompt.end());
    strange.push_back(1 << 20);
  }
  const LookupText text(strange);
  LlmSession session = test::session(model);
  GenerateOptions options;
  options.max_tokens = 8;
  options.lookup_text = &text;
  const Result<Generation> got = generate(session, model, prompt, options);
  ASSERT_TRUE(got.ok()) << got.error().str();
  EXPECT_EQ(got->token_ids.size(), 8u);
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
              testing::HasSubstr("guesses is 65, must be 0 to 64"));
}

}  // namespace
}  // namespace loom::core
