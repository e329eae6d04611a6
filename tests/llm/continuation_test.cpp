// Generation with a tokenizer that drops the first space of a text and has fewer tokens than the
// model has ids: the model of the repository with a tokenizer of the Llama 2 kind.
#include <gtest/gtest.h>

#include "llm/stories.hpp"
#include "text/golden.hpp"

namespace loom::core {
namespace {

const LanguageModel& llama2_stories() {
  static const LanguageModel model = [] {
    Result<std::unique_ptr<ModelSource>> source = open_model_source(test::kStories);
    EXPECT_TRUE(source.ok()) << source.error().str();
    (*source)->tokenizer_json = dump_json(member(read_golden("family_llama2.json"), "tokenizer"));
    Result<LanguageModel> loaded = LanguageModel::load(**source, {DType::q8_0, {}}, test::pool());
    EXPECT_TRUE(loaded.ok()) << loaded.error().str();
    return std::move(*loaded);
  }();
  return model;
}

GenerateOptions hot(uint64_t seed) {
  GenerateOptions options;
  options.max_tokens = 40;
  options.ignore_eos = true;
  options.sampler.temperature = 20.0f;
  options.sampler.seed = seed;
  return options;
}

std::vector<TokenId> known(const Tokenizer& tokenizer, std::vector<TokenId> ids) {
  std::erase_if(ids, [&](TokenId id) { return !tokenizer.has_token(id); });
  return ids;
}

// The part of decode() of everything after decode(prompt).
std::string beyond(const Tokenizer& tokenizer, std::vector<TokenId> prompt,
                   const std::vector<TokenId>& drawn) {
  const std::string report = *tokenizer.decode(prompt);
  for (const TokenId id : known(tokenizer, drawn)) prompt.push_back(id);
  const std::string whole = *tokenizer.decode(prompt);
  EXPECT_EQ(whole.substr(0, report.size()), report);
  return whole.substr(report.size());
}

TEST(Continuation, KeepsTheSpaceBetweenThePromptAndTheFirstWord) {
  const LanguageModel& model = llama2_stories();
  const Tokenizer& tokenizer = *model.tokenizer();
  int spaces = 0;
  for (const char* prompt : {"Once upon", "Once upon ", "", "é", "a</s>"}) {
    const std::vector<TokenId> ids = test::encode(model, prompt);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      LlmSession session = test::session(model);
      const Result<Generation> report = generate(session, model, ids, hot(seed));
      ASSERT_TRUE(report.ok()) << report.error().str();
      EXPECT_EQ(report->text, beyond(tokenizer, ids, report->token_ids)) << prompt;
      spaces += report->text.rfind(' ', 0) == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(spaces, 0);
}

TEST(Continuation, OfWhatWasFedBeforeIsTheSame) {
  const LanguageModel& model = llama2_stories();
  const std::vector<TokenId> ids = test::encode(model, "Once upon");
  for (uint64_t seed = 0; seed < 8; ++seed) {
    LlmSession one = test::session(model), other = test::session(model);
    ASSERT_TRUE(other.feed(ids).ok());
    const Result<Generation> whole = generate(one, model, ids, hot(seed));
    const Result<Generation> rest = generate(other, model, {}, hot(seed));
    ASSERT_TRUE(whole.ok() && rest.ok());
    // The sampler's window differs in the prompt, which no penalty reads here.
    EXPECT_EQ(rest->token_ids, whole->token_ids);
    EXPECT_EQ(rest->text, whole->text);
  }
}

TEST(Continuation, CountsIdsWithoutATokenAndGoesOn) {
  const LanguageModel& model = llama2_stories();
  const Tokenizer& tokenizer = *model.tokenizer();
  ASSERT_LT(tokenizer.vocab_size(), model.config().vocab_size);
  int64_t unknown = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    LlmSession session = test::session(model);
    GenerateOptions options = hot(seed);
    options.stop = {"never in the text"};
    const Result<Generation> report =
        generate(session, model, test::encode(model, "Once upon"), options);
    ASSERT_TRUE(report.ok()) << report.error().str();
    EXPECT_EQ(report->stop, StopReason::length);
    EXPECT_EQ(report->token_ids.size(), 40u);
    const auto with_text = static_cast<int64_t>(known(tokenizer, report->token_ids).size());
    EXPECT_EQ(report->unknown_tokens, 40 - with_text);
    unknown += report->unknown_tokens;
  }
  EXPECT_GT(unknown, 0);
}

}  // namespace
}  // namespace loom::core
