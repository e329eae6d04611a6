// Generation on the model in the tree: why it ends, what reaches the reader, and that no token is
// fed without need.
#include "llm/sessions/generate.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "llm/stories.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core {
namespace {

using testing::HasSubstr;

struct Output {
  Generation result;
  std::vector<std::string> pieces;
  int64_t position = 0;
  std::string joined() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
};

Output run_generate(const GenerateOptions& options, LlmSessionOptions session_options = {},
                    std::string_view prompt = "Once upon a time") {
  const LanguageModel& model = test::stories();
  LlmSession session = test::session(model, session_options);
  Output output;
  Result<Generation> result =
      generate(session, model, test::encode(model, prompt), options, [&](std::string_view text) {
        output.pieces.emplace_back(text);
        return true;
      });
  EXPECT_TRUE(result.ok()) << result.error().str();
  if (result.ok()) output.result = std::move(*result);
  output.position = session.position();
  return output;
}

GenerateOptions tokens(int64_t max_tokens) {
  GenerateOptions options;
  options.max_tokens = max_tokens;
  return options;
}

TEST(Generate, EndsAtTheLengthAndFeedsNoTokenAfterIt) {
  const Output output = run_generate(tokens(10));
  EXPECT_EQ(output.result.stop, StopReason::length);
  EXPECT_EQ(output.result.token_ids.size(), 10u);
  EXPECT_EQ(output.result.prompt_tokens, 4);
  EXPECT_EQ(output.result.decode_steps, 9);
  EXPECT_EQ(output.position, 4 + 9);
  EXPECT_EQ(output.joined(), output.result.text);
}

TEST(Generate, OfNoTokensOnlyReadsThePrompt) {
  const Output output = run_generate(tokens(0));
  EXPECT_EQ(output.result.stop, StopReason::length);
  EXPECT_TRUE(output.result.token_ids.empty());
  EXPECT_EQ(output.position, 4);
}

TEST(Generate, EndsAtTheEndTokenWhichIsNotPartOfTheResult) {
  const Output output = run_generate(tokens(400));
  ASSERT_EQ(output.result.stop, StopReason::eos);
  EXPECT_EQ(output.position, 4 + static_cast<int64_t>(output.result.token_ids.size()));
  EXPECT_EQ(output.result.decode_steps, output.position - 4);
  for (const TokenId id : output.result.token_ids)
    EXPECT_FALSE(test::stories().tokenizer()->is_special(id));
  GenerateOptions more = tokens(static_cast<int64_t>(output.result.token_ids.size()) + 1);
  more.ignore_eos = true;
  const Output longer = run_generate(more);
  EXPECT_EQ(longer.result.stop, StopReason::length);
  EXPECT_TRUE(test::stories().tokenizer()->is_special(longer.result.token_ids.back()));
  EXPECT_EQ(longer.result.text, output.result.text);  // special tokens have no text
}

TEST(Generate, EndsAtTokensTheCallerNames) {
  const Output plain = run_generate(tokens(10));
  GenerateOptions options = tokens(10);
  options.eos_ids = {plain.result.token_ids[5]};
  const Output output = run_generate(options);
  EXPECT_EQ(output.result.stop, StopReason::eos);
  EXPECT_EQ(output.result.token_ids.size(), 5u);
}

TEST(Generate, EndsBeforeAStopString) {
  const std::string whole = run_generate(tokens(60)).result.text;
  for (const std::string& stop : {std::string("."), whole.substr(20, 9), whole.substr(0, 3)}) {
    GenerateOptions options = tokens(60);
    options.stop = {"never in the text", stop};
    const Output output = run_generate(options);
    EXPECT_EQ(output.result.stop, StopReason::stop_string);
    EXPECT_EQ(output.result.text, whole.substr(0, whole.find(stop)));
    EXPECT_EQ(output.joined(), output.result.text);
  }
}

TEST(Generate, GivesOutTextHeldForAStopStringThatNeverCame) {
  const std::string whole = run_generate(tokens(12)).result.text;
  GenerateOptions options = tokens(12);
  options.stop = {whole.substr(whole.size() - 4) + "\x01"};
  const Output output = run_generate(options);
  EXPECT_EQ(output.result.text, whole);
  EXPECT_EQ(output.result.stop, StopReason::length);
}

TEST(Generate, EndsWhenTheContextIsFull) {
  LlmSessionOptions small;
  small.context = 20;
  const Output output = run_generate(tokens(100), small);
  EXPECT_EQ(output.result.stop, StopReason::context);
  EXPECT_EQ(output.position, 20);
  EXPECT_EQ(output.result.token_ids.size(), 17u);  // 16 fed after the prompt, one more drawn
  EXPECT_EQ(output.result.decode_steps, 16);
  EXPECT_EQ(output.result.token_ids, run_generate(tokens(17)).result.token_ids);
}

// A new session reads the remaining tokens again for every token.
std::vector<TokenId> with_forgetting(const std::vector<TokenId>& prompt, size_t context,
                                     size_t keep, size_t shift, size_t count) {
  const LanguageModel& model = test::stories();
  std::vector<TokenId> seen = prompt, out;
  while (out.size() < count) {
    if (seen.size() > context) {
      const size_t kept = std::min(keep, context - 4);
      const size_t free = context - kept;
      const size_t gone = std::min(shift > 0 ? shift : free / 2, free);
      const auto from = seen.begin() + static_cast<std::ptrdiff_t>(kept);
      seen.erase(from, from + static_cast<std::ptrdiff_t>(gone));
    }
    LlmSession session = test::session(model, {});
    EXPECT_TRUE(session.feed(seen).ok());
    const std::span<const float> logits = session.logits();
    out.push_back(
        static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    seen.push_back(out.back());
  }
  return out;
}

TEST(Generate, ForgetsAPartOfAFullContextWhereItMay) {
  const std::vector<TokenId> prompt = test::encode(test::stories(), "Once upon a time");
  const struct {
    int64_t context, keep, shift;
  } cases[] = {{20, 0, 0},  {20, 4, 0},  {20, 4, 1}, {20, 4, 16},
               {20, 4, 99}, {20, 99, 0}, {6, 0, 0}};
  for (const auto& c : cases) {
    SCOPED_TRACE("keep " + std::to_string(c.keep) + ", forget " + std::to_string(c.shift));
    GenerateOptions options = tokens(45);
    options.ignore_eos = true;
    options.shift_context = true;
    options.keep_tokens = c.keep;
    options.shift_tokens = c.shift;
    LlmSessionOptions small;
    small.context = c.context;
    const Output output = run_generate(options, small);
    EXPECT_EQ(output.result.stop, StopReason::length);
    EXPECT_GT(output.result.forgotten_tokens, 0);
    EXPECT_EQ(output.result.token_ids,
              with_forgetting(prompt, static_cast<size_t>(c.context), static_cast<size_t>(c.keep),
                              static_cast<size_t>(c.shift), 45));
  }
}

TEST(Generate, EndsWhenACallbackSaysSo) {
  const LanguageModel& model = test::stories();
  const std::vector<TokenId> prompt = test::encode(model, "Once upon a time");
  LlmSession session = test::session(model);
  int calls = 0;
  const auto three = [&](std::string_view) { return ++calls < 3; };
  const Result<Generation> result = generate(session, model, prompt, tokens(50), three);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->stop, StopReason::cancelled);
  EXPECT_EQ(calls, 3);

  GenerateOptions options = tokens(50);
  options.prefill_progress = [](int64_t, int64_t) { return false; };
  LlmSession other = test::session(model);
  const Result<Generation> none = generate(other, model, prompt, options);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->stop, StopReason::cancelled);
  EXPECT_TRUE(none->token_ids.empty());
}

TEST(Generate, OfAPromptReadInPiecesIsTheSame) {
  std::string prompt;
  for (int i = 0; i < 30; ++i) prompt += "Once upon a time there was a little rabbit. ";
  GenerateOptions options = tokens(20);
  const Output plain = run_generate(options, {}, prompt);
  int64_t last = 0;
  options.prefill_progress = [&](int64_t done, int64_t total) {
    EXPECT_GT(done, last);
    last = done;
    EXPECT_LE(done, total);
    return true;
  };
  const Output pieces = run_generate(options, {}, prompt);
  EXPECT_EQ(pieces.result.token_ids, plain.result.token_ids);
  EXPECT_EQ(last, plain.result.prompt_tokens);
}

TEST(Generate, ForgetsTheSameBesideGuesses) {
  for (const int64_t context : {20, 40}) {
    GenerateOptions options = tokens(90);
    options.ignore_eos = true;
    options.shift_context = true;
    LlmSessionOptions small;
    small.context = context;
    const Output plain = run_generate(options, small);
    options.lookup = true;
    const Output guessed = run_generate(options, small);
    EXPECT_GT(guessed.result.guessed, 0);
    EXPECT_EQ(guessed.result.token_ids, plain.result.token_ids);
    EXPECT_EQ(guessed.result.forgotten_tokens, plain.result.forgotten_tokens);
  }
}

TEST(Generate, KeepsNoNegativeNumberOfTokens) {
  const LanguageModel& model = test::stories();
  LlmSession session = test::session(model);
  GenerateOptions options = tokens(8);
  options.shift_context = true;
  const std::vector<TokenId> prompt = test::encode(model, "Once");
  options.keep_tokens = -1;
  EXPECT_THAT(generate(session, model, prompt, options).error().str(),
              HasSubstr("must be 0 or more"));
}

TEST(Generate, GoesOnFromWhatTheSessionHolds) {
  const LanguageModel& model = test::stories();
  LlmSession session = test::session(model);
  ASSERT_TRUE(session.feed(test::encode(model, "Once upon a time")).ok());
  const Result<Generation> first = generate(session, model, {}, tokens(8));
  ASSERT_TRUE(first.ok());
  const std::vector<TokenId> last = {first->token_ids.back()};
  const Result<Generation> second = generate(session, model, last, tokens(8));
  ASSERT_TRUE(second.ok());
  std::vector<TokenId> all = first->token_ids;
  all.insert(all.end(), second->token_ids.begin(), second->token_ids.end());
  EXPECT_EQ(all, run_generate(tokens(16)).result.token_ids);
}

TEST(Generate, SamplesTheSameTextForTheSameSeedAndAnyChunk) {
  GenerateOptions options = tokens(40);
  options.sampler.temperature = 0.9f;
  options.sampler.top_p = 0.95f;
  options.sampler.seed = 5;
  LlmSessionOptions chunked;
  chunked.chunk = 3;
  const Output a = run_generate(options), b = run_generate(options, chunked);
  EXPECT_EQ(a.result.token_ids, b.result.token_ids);
  options.sampler.seed = 6;
  EXPECT_NE(run_generate(options).result.token_ids, a.result.token_ids);
}

// A model at a high temperature writes all kinds of bytes; the output always has whole characters.
TEST(Generate, NeverSplitsACharacter) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    GenerateOptions options = tokens(60);
    options.sampler.temperature = 50.0f;
    options.sampler.seed = seed;
    options.ignore_eos = true;
    options.stop = {"\xE2\x82\xAC", "\xC3\xA9t\xC3\xA9"};
    const Output output = run_generate(options);
    for (const std::string& piece : output.pieces) {
      EXPECT_FALSE(piece.empty());
      EXPECT_TRUE(text::is_valid_utf8(piece));
    }
    EXPECT_EQ(output.joined(), *test::stories().tokenizer()->decode(output.result.token_ids));
  }
}

TEST(Generate, RefusesWhatCannotWork) {
  const LanguageModel& model = test::stories();
  struct Case {
    const char* message;
    GenerateOptions options;
    size_t prompt_tokens;
    Code code;
  };
  GenerateOptions negative = tokens(-1), hot = tokens(1), empty_stop = tokens(1);
  hot.sampler.temperature = -1;
  empty_stop.stop = {""};
  const Case cases[] = {
      {"max_tokens", negative, 1, Code::invalid_argument},
      {"temperature", hot, 1, Code::invalid_argument},
      {"stop string", empty_stop, 1, Code::invalid_argument},
      {"prompt holds no token", tokens(1), 0, Code::invalid_argument},
      {"context is full", tokens(1), 33, Code::out_of_range},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    LlmSessionOptions small;
    small.context = 32;
    for (const bool with_progress : {false, true}) {
      LlmSession session = test::session(model, small);
      GenerateOptions options = c.options;
      if (with_progress) options.prefill_progress = [](int64_t, int64_t) { return true; };
      const std::vector<TokenId> prompt(c.prompt_tokens, 300);
      const Result<Generation> result = generate(session, model, prompt, options);
      ASSERT_FALSE(result.ok());
      EXPECT_EQ(result.error().code, c.code);
      EXPECT_THAT(result.error().str(), HasSubstr(c.message));
      EXPECT_EQ(session.position(), 0);
    }
  }
}

TEST(Generate, WithoutTokenizerGivesTokensOnly) {
  Result<DecoderConfig> config = shape_config("tiny");
  ASSERT_TRUE(config.ok());
  Result<LanguageModel> model = LanguageModel::random(*config, DType::q8_0, 3, test::pool());
  ASSERT_TRUE(model.ok());
  LlmSession session = test::session(*model);
  const std::vector<TokenId> prompt = {1, 2, 3};
  const Result<Generation> result = generate(session, *model, prompt, tokens(5));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->token_ids.size(), 5u);
  EXPECT_TRUE(result->text.empty());
  GenerateOptions stop = tokens(5);
  stop.stop = {"x"};
  EXPECT_FALSE(generate(session, *model, prompt, stop).ok());
}

// log softmax as a textbook has it, in double.
std::vector<double> log_softmax(std::span<const float> logits) {
  double largest = -1e300, sum = 0;
  for (const float v : logits) largest = std::max(largest, static_cast<double>(v));
  for (const float v : logits) sum += std::exp(static_cast<double>(v) - largest);
  std::vector<double> out;
  for (const float v : logits) out.push_back(static_cast<double>(v) - largest - std::log(sum));
  return out;
}

TEST(Generate, TellsTheProbabilityOfEveryToken) {
  for (const float temperature : {0.0f, 0.8f}) {
    GenerateOptions options = tokens(24);
    options.sampler.temperature = temperature;
    options.sampler.seed = 5;
    const Output plain = run_generate(options);
    std::vector<Token> seen;
    std::vector<std::vector<TokenChoice>> tops;
    std::string text;
    options.logprobs = true;
    options.top_logprobs = 4;
    options.on_token = [&](const Token& token) {
      seen.push_back(token);
      tops.emplace_back(token.top.begin(), token.top.end());
      text += token.text;
      return true;
    };
    const Output output = run_generate(options);
    EXPECT_EQ(output.result.token_ids, plain.result.token_ids) << "asking changes nothing";
    ASSERT_EQ(seen.size(), output.result.token_ids.size());
    ASSERT_EQ(output.result.logprobs.size(), seen.size());
    EXPECT_EQ(output.result.text.substr(0, text.size()), text);
    // Another session, fed one token at a time, has the logits.
    const LanguageModel& model = test::stories();
    LlmSession session = test::session(model, {});
    ASSERT_TRUE(session.feed(test::encode(model, "Once upon a time")).ok());
    for (size_t i = 0; i < seen.size(); ++i) {
      const std::vector<double> expected = log_softmax(session.logits());
      EXPECT_EQ(seen[i].id, output.result.token_ids[i]);
      EXPECT_NEAR(static_cast<double>(seen[i].logprob), expected[static_cast<size_t>(seen[i].id)],
                  1e-5);
      EXPECT_EQ(seen[i].logprob, output.result.logprobs[i]);
      ASSERT_EQ(tops[i].size(), 4u);
      for (size_t t = 0; t < 4; ++t) {
        EXPECT_NEAR(static_cast<double>(tops[i][t].logprob),
                    expected[static_cast<size_t>(tops[i][t].id)], 1e-5);
        EXPECT_GE(tops[i][t == 0 ? 0 : t - 1].logprob, tops[i][t].logprob);
      }
      EXPECT_NEAR(static_cast<double>(tops[i][0].logprob),
                  *std::max_element(expected.begin(), expected.end()), 1e-5);
      ASSERT_TRUE(session.feed(std::span(&seen[i].id, 1)).ok());
    }
  }
}

TEST(Generate, StopsWhereTheListenerSaysSo) {
  GenerateOptions options = tokens(24);
  int num_calls = 0;
  options.on_token = [&](const Token&) { return ++num_calls < 3; };
  const Output output = run_generate(options);
  EXPECT_EQ(output.result.stop, StopReason::cancelled);
  EXPECT_EQ(output.result.token_ids.size(), 3u);
  options.top_logprobs = -1;
  LlmSession session = test::session(test::stories(), {});
  EXPECT_THAT(generate(session, test::stories(), test::encode(test::stories(), "a"), options)
                  .error()
                  .message,
              HasSubstr("top_logprobs"));
}

}  // namespace
}  // namespace loom::core
