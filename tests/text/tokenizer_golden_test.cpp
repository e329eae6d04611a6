// Ids and texts compared with HF `tokenizers`: twelve families on all texts, a hundred small
// changes on texts with difficult word ends, and the published prompts of the model of the
// examples.
#include "golden.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

class FamilyGolden : public testing::TestWithParam<const char*> {};

TEST_P(FamilyGolden, EncodesAndDecodesLikeTheReferenceLibrary) {
  const JsonValue golden = read_golden(std::string("family_") + GetParam() + ".json");
  const JsonValue texts = read_golden("texts.json");
  const Tokenizer tokenizer = load_tokenizer(member(golden, "tokenizer"));
  ASSERT_EQ(texts.elements().size(), member(golden, "encoded").elements().size());
  for (size_t i = 0; i < texts.elements().size(); ++i) {
    const std::string& text = texts.elements()[i].text();
    SCOPED_TRACE(testing::Message() << "text " << i << ": " << text);
    const std::vector<TokenId> ids = ids_of(member(golden, "encoded").elements()[i]);
    const Result<std::vector<TokenId>> got = tokenizer.encode(text);
    ASSERT_TRUE(got.ok()) << got.error().str();
    EXPECT_EQ(*got, ids);

    const JsonValue& unparsed = member(golden, "unparsed").elements()[i];
    const Tokenizer::EncodeOptions as_text{true, false};
    EXPECT_EQ(*tokenizer.encode(text, as_text), unparsed.is_null() ? ids : ids_of(unparsed));

    const Tokenizer::EncodeOptions bare{false, true};
    EXPECT_EQ(tokenizer.encode(text, bare)->size(),
              static_cast<size_t>(*member(golden, "bare").elements()[i].as_int("bare")));

    const JsonValue& decoded = member(golden, "decoded").elements()[i];
    const std::string& without = decoded.is_null() ? text : decoded.text();
    EXPECT_EQ(*tokenizer.decode(ids), without);
    const JsonValue& kept = member(golden, "kept").elements()[i];
    EXPECT_EQ(*tokenizer.decode(ids, false), kept.is_null() ? without : kept.text());
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyGolden, testing::ValuesIn(kFamilies),
                         [](const auto& test) { return std::string(test.param); });

// `base` with some members replaced by those of `changes`.
JsonValue with_changes(const JsonValue& base, const JsonValue& changes) {
  std::vector<JsonValue::Member> members;
  for (const auto& [key, value] : base.members()) {
    const JsonValue* changed = changes.find(key);
    members.emplace_back(key, changed != nullptr ? *changed : value);
  }
  return JsonValue::object(std::move(members));
}

class VariantGolden : public testing::TestWithParam<const char*> {};

TEST_P(VariantGolden, EveryStepSplitsLikeTheReferenceLibrary) {
  const JsonValue base = read_golden("variants_base.json");
  const JsonValue variants = read_golden(GetParam());
  ASSERT_GT(variants.elements().size(), 40U);
  for (const JsonValue& variant : variants.elements()) {
    SCOPED_TRACE(member(variant, "name").text());
    const Tokenizer tokenizer =
        load_tokenizer(with_changes(member(base, "tokenizer"), member(variant, "changes")));
    for (size_t i = 0; i < member(base, "texts").elements().size(); ++i) {
      const std::string& text = member(base, "texts").elements()[i].text();
      const Result<std::vector<TokenId>> got = tokenizer.encode(text);
      ASSERT_TRUE(got.ok()) << got.error().str();
      EXPECT_EQ(*got, ids_of(member(variant, "encoded").elements()[i])) << text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, VariantGolden,
                         testing::Values("variants_1.json", "variants_2.json"),
                         [](const auto& test) { return std::string(test.param).substr(0, 10); });

TEST(SharedModel, ThePromptsOfTheReferenceModelGetItsIds) {
  const std::string folder = loom_test::source_path("../shared/data/models/shakespeare-llama/");
  const std::string json = read_whole_file(folder + "tokenizer.json");
  if (json.empty()) GTEST_SKIP() << "the shared model is not here";
  const Result<Tokenizer> tokenizer = Tokenizer::parse(json, "tokenizer.json");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  const Result<JsonValue> reference =
      parse_json(read_whole_file(folder + "reference.json"), "reference");
  ASSERT_TRUE(reference.ok()) << reference.error().str();
  const auto& prompts = member(*reference, "prompts").elements();
  ASSERT_EQ(prompts.size(), 8U);
  for (const JsonValue& prompt : prompts) {
    const std::string& text = member(prompt, "text").text();
    EXPECT_EQ(*tokenizer->encode(text), ids_of(member(prompt, "ids"))) << text;
    EXPECT_EQ(*tokenizer->decode(ids_of(member(prompt, "ids"))), text);
    EXPECT_EQ(*tokenizer->decode(ids_of(member(prompt, "greedy_ids"))),
              member(prompt, "greedy_text").text());
  }
  EXPECT_EQ(tokenizer->vocab_size(), 4096);
  EXPECT_EQ(tokenizer->token_id("<|im_start|>"), 1);
}

}  // namespace
}  // namespace loom::core
