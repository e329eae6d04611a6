// Texts and pairs as encoders take them, against HF `tokenizers`
// (tools/text/make_encoder_goldens.py): ids, types, truncation. LOOM_TOKENIZER_CASES names a file
// of more cases.
#include <cstdlib>

#include "golden.hpp"

namespace loom::core {
namespace {

std::vector<int32_t> types_of(const JsonValue& row, size_t count) {
  const JsonValue* types = row.find("types");
  return types != nullptr ? ids_of(*types) : std::vector<int32_t>(count, 0);
}

void expect_case(const Tokenizer& tokenizer, const JsonValue& row) {
  const std::string& text = member(row, "text").text();
  const JsonValue* pair = row.find("pair");
  const JsonValue* most = row.find("most");
  const std::string_view second = pair != nullptr ? pair->text() : std::string_view();
  const size_t limit = most != nullptr ? static_cast<size_t>(*most->as_int("most")) : 0;
  const auto got = tokenizer.encode_texts(text, pair != nullptr ? &second : nullptr, limit);
  ASSERT_TRUE(got.ok()) << got.error().str();
  const std::vector<TokenId> ids = ids_of(member(row, "ids"));
  EXPECT_EQ(got->ids, ids) << text << " | " << second << " | " << limit;
  EXPECT_EQ(got->types, types_of(row, ids.size())) << text << " | " << second << " | " << limit;
  if (pair == nullptr && limit == 0) {
    EXPECT_EQ(*tokenizer.encode(text), ids) << text;
  }
  if (const JsonValue* decoded = row.find("decoded")) {
    EXPECT_EQ(*tokenizer.decode(ids), decoded->text());
  }
}

// Checks the file, and Loom's output for it.
void expect_file(const JsonValue& file) {
  ASSERT_FALSE(file.elements().empty());
  for (const JsonValue& entry : file.elements()) {
    SCOPED_TRACE(member(entry, "name").text());
    const auto spec = parse_tokenizer_json(dump_json(member(entry, "tokenizer")), "t");
    ASSERT_TRUE(spec.ok()) << spec.error().str();
    const auto tokenizer = Tokenizer::make(*spec);
    const auto again = Tokenizer::parse(tokenizer_json(*spec), "t");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
    ASSERT_TRUE(again.ok()) << again.error().str();
    for (const JsonValue& row : member(entry, "cases").elements()) {
      expect_case(*tokenizer, row);
      expect_case(*again, row);
    }
  }
}

TEST(EncoderGolden, TextsAndPairsHaveTheIdsAndTypesOfTheReferenceLibrary) {
  expect_file(read_golden("encoders.json"));
}

TEST(EncoderGolden, AndSoHaveTheCasesOfAnotherFile) {
  const char* path = std::getenv("LOOM_TOKENIZER_CASES");
  if (path == nullptr) GTEST_SKIP() << "LOOM_TOKENIZER_CASES names no file";
  const auto file = parse_json(read_whole_file(path), path);
  ASSERT_TRUE(file.ok()) << file.error().str();
  expect_file(*file);
}

TEST(BertVocabulary, AFileOfLinesIsTheTokenizerThatTheJsonDescribes) {
  const std::string lines = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\r\nhello\n##s\nworld\n,\ncafe";
  const auto spec = bert_tokenizer_spec(lines, {}, "vocab.txt");
  ASSERT_TRUE(spec.ok()) << spec.error().str();
  const auto tokenizer = Tokenizer::make(*spec);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  EXPECT_EQ(*tokenizer->encode("Hellos,  wOrld Café x"),
            (std::vector<TokenId>{2, 5, 6, 8, 7, 9, 1, 3}));
  const std::string_view second = "world";
  const auto pair = tokenizer->encode_texts("hello", &second);
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->ids, (std::vector<TokenId>{2, 5, 3, 7, 3}));
  EXPECT_EQ(pair->types, (std::vector<int32_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(Tokenizer::parse(tokenizer_json(*spec), "t")->encode("Hellos")->size(), 4U);
}

TEST(BertVocabulary, AFileThatCannotBeOneIsRefused) {
  EXPECT_EQ(bert_tokenizer_spec("", {}, "v").error().str(), "v: is not a vocabulary: it is empty");
  EXPECT_EQ(bert_tokenizer_spec("a\nb\n", {}, "v").error().str(), "v: has no token '[UNK]'");
  EXPECT_EQ(bert_tokenizer_spec("\xff\n", {}, "v").error().str(),
            "v: is not a vocabulary: it is not UTF-8");
}

TEST(EncodeTexts, ALimitThatSpecialTokensFillIsRefused) {
  const auto spec = bert_tokenizer_spec("[UNK]\n[CLS]\n[SEP]\na", {}, "v");
  const auto tokenizer = Tokenizer::make(*spec);
  const auto got = tokenizer->encode_texts("a", nullptr, 2);
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().message,
            "a limit of 2 tokens leaves no room for text beside 2 special tokens");
  EXPECT_TRUE(tokenizer->encode_texts("a a a", nullptr, 3)->truncated);
  EXPECT_FALSE(tokenizer->encode_texts("a", nullptr, 3)->truncated);
}

}  // namespace
}  // namespace loom::core
