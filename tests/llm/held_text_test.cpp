// Texts constrained by a grammar, a schema, or banned strings: the output fits, and ends at the end
// of the grammar.
#include <gmock/gmock.h>

#include "io/json/json.hpp"
#include "llm/sampling/text_rules.hpp"
#include "llm/stories.hpp"

namespace loom::core {
namespace {

using testing::HasSubstr;

Result<Generation> hold_text(const GenerateOptions& options, std::string_view prompt = "Once") {
  const LanguageModel& model = test::stories();
  LlmSession session = test::session(model);
  return generate(session, model, test::encode(model, prompt), options);
}

GenerateOptions hot_options(uint64_t seed) {
  GenerateOptions options;
  options.max_tokens = 200;
  options.sampler.temperature = 1.5f;
  options.sampler.seed = seed;
  return options;
}

TEST(HeldText, FitsItsGrammarAndEndsWithIt) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    GenerateOptions options = hot_options(seed);
    options.grammar = "root ::= \" \" (\"yes\" | \"no\") \".\"";
    options.ignore_eos = seed % 2 == 1;
    const Result<Generation> text = hold_text(options);
    ASSERT_TRUE(text.ok()) << text.error().str();
    EXPECT_THAT(text->text, testing::AnyOf(" yes.", " no."));
    EXPECT_EQ(text->stop, StopReason::eos);
  }
}

TEST(HeldText, FitsItsSchema) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    GenerateOptions options = hot_options(seed);
    options.max_tokens = 1000;
    options.json_schema =
        R"({"type":"object","properties":{"name":{"type":"string","maxLength":20},
            "age":{"type":"integer","minimum":1,"maximum":120},
            "kind":{"enum":["cat","dog"]}},"required":["name","age","kind"],
            "additionalProperties":false})";
    const Result<Generation> text = hold_text(options);
    ASSERT_TRUE(text.ok()) << text.error().str();
    ASSERT_EQ(text->stop, StopReason::eos) << text->text;
    const Result<JsonValue> json = parse_json(text->text, "text");
    ASSERT_TRUE(json.ok()) << text->text;
    EXPECT_EQ(json->members().size(), 3u);
    const int64_t age = *json->find("age")->as_int("age");
    EXPECT_GE(age, 1);
    EXPECT_LE(age, 120);
  }
}

TEST(HeldText, NeverSpellsABannedString) {
  bool would = false;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    GenerateOptions options = hot_options(seed);
    options.sampler.temperature = 0.7f;
    options.sampler.banned_strings = {" the", "and", "e w"};
    const Result<Generation> held = hold_text(options);
    ASSERT_TRUE(held.ok()) << held.error().str();
    for (const std::string& text : options.sampler.banned_strings)
      EXPECT_EQ(held->text.find(text), std::string::npos) << held->text;
    options.sampler.banned_strings.clear();
    would |= hold_text(options)->text.find("and") != std::string::npos;
  }
  EXPECT_TRUE(would);
}

TEST(HeldText, IsTheSameForTheSameRequest) {
  GenerateOptions options = hot_options(5);
  options.json_schema = R"({"type":"array","items":{"type":"string"},"maxItems":3})";
  EXPECT_EQ(hold_text(options)->token_ids, hold_text(options)->token_ids);
}

TEST(HeldText, IsTheSameByRulesThatWereCompiledBefore) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    GenerateOptions options = hot_options(seed);
    if (seed % 3 == 0) options.json_schema = R"({"enum":["yes","no",12]})";
    if (seed % 3 == 1) options.grammar = "root ::= [a-z ]{3,20} \".\"";
    if (seed % 3 != 0 && seed % 2 == 1) options.sampler.banned_strings = {"e", "th"};
    GenerateOptions compiled = options;
    const auto rules = compile_rules(test::stories(), options);
    ASSERT_TRUE(rules.ok()) << rules.error().str();
    compiled.rules = *rules;
    compiled.grammar.clear();
    compiled.json_schema.clear();
    const Result<Generation> text = hold_text(options), same = hold_text(compiled);
    ASSERT_TRUE(text.ok() && same.ok());
    EXPECT_EQ(text->token_ids, same->token_ids);
    EXPECT_EQ(hold_text(compiled)->token_ids, same->token_ids) << "a text leaves nothing in them";
  }
}

TEST(HeldText, RulesOfOtherMarksAreRefused) {
  GenerateOptions options;
  options.grammar = "root ::= \"a\"";
  const auto rules = compile_rules(test::stories(), options);
  ASSERT_TRUE(rules.ok());
  options.rules = *rules;
  options.special_text = true;
  EXPECT_THAT(hold_text(options).error().str(), HasSubstr("compiled for another model"));
  EXPECT_EQ(*compile_rules(test::stories(), {}), nullptr) << "nothing to hold the text to";
}

TEST(HeldText, RefusesWhatCannotWork) {
  GenerateOptions both;
  both.grammar = "root ::= \"a\"";
  both.json_schema = "{}";
  EXPECT_THAT(hold_text(both).error().str(), HasSubstr("give one of them"));
  GenerateOptions bad;
  bad.json_schema = R"({"not":{}})";
  EXPECT_THAT(hold_text(bad).error().str(), HasSubstr("#/not: the keyword \"not\""));
  bad.json_schema = "{";
  EXPECT_FALSE(hold_text(bad).ok());
  GenerateOptions nothing;
  for (TokenId id = 0; id < test::stories().config().vocab_size; ++id)
    nothing.sampler.banned_tokens.push_back(id);
  EXPECT_THAT(hold_text(nothing).error().str(), HasSubstr("no token is left"));
}

}  // namespace
}  // namespace loom::core
