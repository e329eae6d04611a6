// The twelve deviations of the original project's tokenizer from the reference library, each as one
// small test of Loom's behavior. K1 to K12 are their names in its analysis.
#include <gtest/gtest.h>

#include <map>

#include "golden.hpp"

namespace loom::core {
namespace {

// A tokenizer whose vocabulary is `tokens` in order, and its tokens for a text.
class Small {
 public:
  Small(const std::vector<std::string>& tokens, const std::string& merges,
        const std::string& members, const std::string& model = "") {
    JsonValue vocab = JsonValue::object();
    for (size_t i = 0; i < tokens.size(); ++i) {
      vocab.add(tokens[i], JsonValue::integer(static_cast<int64_t>(i)));
      names_[static_cast<TokenId>(i)] = tokens[i];
    }
    const std::string json = "{" + members + (members.empty() ? "" : ",") +
                             R"("model":{"type":"BPE",)" + model + R"("vocab":)" +
                             dump_json(vocab) + ",\"merges\":[" + merges + "]}}";
    Result<Tokenizer> parsed = Tokenizer::parse(json, "tokenizer.json");
    EXPECT_TRUE(parsed.ok()) << parsed.error().str();
    tokenizer_ = std::make_unique<Tokenizer>(std::move(*parsed));
  }
  std::string spell(const std::string& text) const {
    std::string out;
    const std::vector<TokenId> ids = *tokenizer_->encode(text);
    for (const TokenId id : ids) out += (out.empty() ? "" : "|") + name(id);
    return out;
  }
  const Tokenizer& operator*() const { return *tokenizer_; }

 private:
  std::string name(TokenId id) const {
    const auto found = names_.find(id);
    return found == names_.end() ? "#" + std::to_string(id) : found->second;
  }
  std::map<TokenId, std::string> names_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

const char* const kByteLevel =
    R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true},)"
    R"("decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})";

std::string added(int id, const std::string& content, const std::string& flags) {
  return R"({"id":)" + std::to_string(id) + R"(,"content":")" + content +
         R"(","single_word":false,"lstrip":false,"normalized":false,)" + flags + "}";
}

TEST(SeedDeviations, K1BytesFromA1UpStandForThemselvesInTheByteAlphabet) {
  const Small small({"Ã", "©", "Ã©", "Ð", "¶"}, R"("Ã ©")", kByteLevel);
  EXPECT_EQ(small.spell("éж"), "Ã©|Ð|¶");
  EXPECT_EQ(*(*small).decode(*(*small).encode("éж")), "éж");
}

TEST(SeedDeviations, K2ThePatternOfTheFileSplitsTheText) {
  const std::string split = R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},)"
                            R"("behavior":"Isolated","invert":false})";
  const Small small({"1", "11", "1111"}, R"("1 1","11 11")", split);
  EXPECT_EQ(small.spell("11111"), "11|1|11");
}

TEST(SeedDeviations, K3TheLastOfSeveralSpacesBelongsToTheWord) {
  const Small small({"Ġ", "a", "b", "Ġb", "ĠĠ"}, R"("Ġ b","Ġ Ġ")", kByteLevel);
  EXPECT_EQ(small.spell("a   b"), "a|ĠĠ|Ġb");
}

TEST(SeedDeviations, K4TheLongestOfOverlappingTokensWinsAndStripsItsSpaces) {
  const std::string tokens = R"("added_tokens":[)" +
                             added(2, "<a", R"("rstrip":false,"special":true)") + "," +
                             added(3, "<a>", R"("rstrip":true,"special":true)") + "]";
  const Small small({"x", "y"}, "", tokens);
  EXPECT_EQ(small.spell("x<a>  y<ay"), "x|#3|y|#2|y");
}

TEST(SeedDeviations, K5AddedTokensDecode) {
  const std::string tokens = R"("added_tokens":[)" +
                             added(1, "<|im_end|>", R"("rstrip":false,"special":true)") + "]," +
                             kByteLevel;
  const Small small({"x"}, "", tokens);
  const std::vector<TokenId> ids = {0, 1, 0};
  EXPECT_EQ(*(*small).decode(ids, false), "x<|im_end|>x");
  EXPECT_EQ(*(*small).decode(ids), "xx");
}

TEST(SeedDeviations, K6IgnoreMergesIsHonoured) {
  const Small small({"a", "b", "ab"}, "", "", R"("ignore_merges":true,)");
  EXPECT_EQ(small.spell("ab"), "ab");
}

TEST(SeedDeviations, K7UnknownPiecesBecomeBytesOrTheUnknownToken) {
  const Small bytes({"?", "<0xC3>", "<0xA9>"}, "", "", R"("unk_token":"?","byte_fallback":true,)");
  EXPECT_EQ(bytes.spell("é"), "<0xC3>|<0xA9>");
  EXPECT_EQ(bytes.spell("x"), "?");
}

TEST(SeedDeviations, K8NormalizersRun) {
  const Small small({"é", "e"}, "", R"("normalizer":{"type":"NFC"})");
  EXPECT_EQ(small.spell("e\u0301"), "é");
}

TEST(SeedDeviations, K9AnyTemplateAddsItsTokens) {
  const std::string bos =
      R"("post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":)"
      R"({"id":"<bos>","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[],)"
      R"("special_tokens":{"<bos>":{"id":"<bos>","ids":[1],"tokens":["<bos>"]}}})";
  const Small small({"a", "<bos>"}, "", bos);
  EXPECT_EQ(small.spell("a"), "<bos>|a");
}

TEST(SeedDeviations, K10MetaspaceFollowsItsPrependScheme) {
  const auto spell = [](const std::string& scheme) {
    const std::string token =
        R"("added_tokens":[)" + added(2, "<s>", R"("rstrip":false,"special":true)") + "],";
    const std::string metaspace =
        R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":")";
    return Small({"_", "a"}, "", token + metaspace + scheme + "\"}").spell("a a<s>a");
  };
  EXPECT_EQ(spell("always"), "_|a|_|a|#2|_|a");
  EXPECT_EQ(spell("first"), "_|a|_|a|#2|a");
  EXPECT_EQ(spell("never"), "a|_|a|#2|a");
}

TEST(SeedDeviations, K11OtherModelsAreRefusedByName) {
  const Result<Tokenizer> tokenizer = Tokenizer::parse(R"({"model":{"type":"WordLevel"}})", "t");
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_EQ(tokenizer.error().str(), "t: model.type: 'WordLevel' is not supported");
}

TEST(SeedDeviations, K12SpacesOfUnicodeAreSpaces) {
  const Small small({"x", "a"}, "", R"("pre_tokenizer":{"type":"WhitespaceSplit"})");
  EXPECT_EQ(small.spell("a\u00a0a\u3000a"), "a|a|a");
}

}  // namespace
}  // namespace loom::core
