// Each option of a tokenizer that is written as GGUF: the same ids after reading back, or an error
// that names the field. tests/outside/tokens_check.py compares with llama.cpp.
#include <gmock/gmock.h>

#include "base/text.hpp"
#include "formats/gguf/tokenizer/export_tokenizer.hpp"
#include "formats/gguf/tokenizer/pre.hpp"
#include "formats/gguf/tokenizer/tokenizer_limits.hpp"
#include "formats/gguf_testing.hpp"
#include "text/golden.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {
namespace {

// The tokenizer of a family with texts replaced in its JSON.
using Changes = std::vector<std::pair<std::string, std::string>>;
std::string changed(const char* family, const Changes& changes) {
  std::string json = dump_json(member(read_golden(cat("family_", family, ".json")), "tokenizer"));
  for (const auto& [from, to] : changes) {
    EXPECT_NE(json.find(from), std::string::npos) << from;
    if (json.find(from) != std::string::npos) json.replace(json.find(from), from.size(), to);
  }
  return json;
}

MadeSource source_of(const std::string& json) {
  MadeSource source(tiny("LlamaForCausalLM", "llama"));
  source.tokenizer_json = json;
  const auto tokenizer = Tokenizer::parse(json, "t");
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().str();
  if (tokenizer.ok()) source.config.vocab_size = tokenizer->vocab_size() + 3;
  return source;
}

constexpr const char* kTexts[] = {"hello world",
                                  " hello",
                                  "  two  spaces ",
                                  "a<s>b",
                                  "x <s> y",
                                  "ab",
                                  "abc",
                                  "H\xC3\xA9llo e\xCC\x81",
                                  "\n\n\t",
                                  "<unk>",
                                  "<|endoftext|> a",
                                  "12345",
                                  "\xE2\x96\x81",
                                  "\xE2\x96\x81\xE2\x96\x81"
                                  "a",
                                  "I'M we'll",
                                  "the</s>"};

void expect_same_ids(const std::string& json) {
  const MadeSource source = source_of(json);
  GgufMetadata metadata;
  const Status written = write_gguf_tokenizer(source, metadata);
  ASSERT_TRUE(written.ok()) << written.error().str();
  const auto spec = round_trip(metadata);
  ASSERT_TRUE(spec.ok()) << spec.error().str();
  const auto before = Tokenizer::parse(json, "t"), after = Tokenizer::make(*spec);
  ASSERT_TRUE(before.ok() && after.ok());
  for (const char* text : kTexts) EXPECT_EQ(*after->encode(text), *before->encode(text)) << text;
}

std::string added(int id, const std::string& content, const std::string& flag) {
  std::string out = cat(R"({"id":)", id, R"(,"content":")", content, '"');
  for (const char* name : {"single_word", "lstrip", "rstrip", "normalized", "special"})
    out += cat(",\"", name, "\":", name == flag ? "true" : "false");
  return out + "}";
}

// A template with these parts: "" is the text.
std::string template_of(const std::vector<std::string>& parts, const Tokenizer& tokenizer) {
  std::string indices, specials;
  for (const std::string& part : parts) {
    if (!indices.empty()) indices += ",";
    indices += part.empty() ? R"({"Sequence":{"id":"A","type_id":0}})"
                            : cat(R"({"SpecialToken":{"id":")", part, R"(","type_id":0}})");
    if (part.empty() || specials.find(part) != std::string::npos) continue;
    if (!specials.empty()) specials += ",";
    specials += cat('"', part, R"(":{"id":")", part, R"(","ids":[)", tokenizer.token_id(part),
                    R"(],"tokens":[")", part, "\"]}");
  }
  return cat(R"("post_processor":{"type":"TemplateProcessing","single":[)", indices,
             R"(],"pair":[],"special_tokens":{)", specials, "}}");
}

TEST(GgufTokenizerOptions, OfAddedTokensComeBack) {
  for (const char* family : {"gpt2", "qwen2", "llama2", "gemma"}) {
    const auto tokenizer = Tokenizer::parse(changed(family, {}), "t");
    ASSERT_TRUE(tokenizer.ok());
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized", "special", "none"}) {
      SCOPED_TRACE(cat(family, " ", flag));
      const int id = static_cast<int>(tokenizer->vocab_size());
      expect_same_ids(changed(
          family, {{"\"added_tokens\":[", cat("\"added_tokens\":[", added(id, "<x>", flag), ",",
                                              added(id + 1, "h\xC3\xA9", flag), ",")}}));
    }
  }
}

TEST(GgufTokenizerOptions, OfSpacesComeBack) {
  const JsonValue golden = member(read_golden("family_llama2.json"), "tokenizer");
  const std::string normalizer = cat("\"normalizer\":", dump_json(member(golden, "normalizer")));
  for (const char* scheme : {"always", "first", "never"}) {
    SCOPED_TRACE(scheme);
    const std::string meta = cat(R"("pre_tokenizer":{"type":"Metaspace","replacement":")", kSpace,
                                 R"(","prepend_scheme":")", scheme, R"(","split":false})");
    expect_same_ids(
        changed("llama2", {{normalizer, "\"normalizer\":null"}, {"\"pre_tokenizer\":null", meta}}));
  }
}

TEST(GgufTokenizerOptions, OfTheTemplateAreTheOnesOfItsTokens) {
  const auto tokenizer = Tokenizer::parse(changed("llama2", {}), "t");
  const JsonValue golden = member(read_golden("family_llama2.json"), "tokenizer");
  const std::string own = cat("\"post_processor\":", dump_json(member(golden, "post_processor")));
  for (const std::vector<std::string>& parts : {std::vector<std::string>{"<s>", ""},
                                                {"<s>", "", "</s>"},
                                                {"", "</s>"},
                                                {""},
                                                {"<unk>", ""}}) {
    // No bos_token_id of the model: that of the template is written.
    expect_same_ids(changed("llama2", {{own, template_of(parts, *tokenizer)}}));
  }
}

TEST(GgufTokenizerOptions, ThatGgufHasNoPlaceForAreRefusedByName) {
  const auto llama = Tokenizer::parse(changed("llama2", {}), "t");
  ASSERT_TRUE(llama.ok());
  const JsonValue golden = member(read_golden("family_llama2.json"), "tokenizer");
  const std::string post = cat("\"post_processor\":", dump_json(member(golden, "post_processor")));
  const std::string mark = cat("\"normalizer\":", dump_json(member(golden, "normalizer")));
  const JsonValue gpt2 = member(read_golden("family_gpt2.json"), "tokenizer");
  const std::string pre = cat("\"pre_tokenizer\":", dump_json(member(gpt2, "pre_tokenizer")));
  const std::string level =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)";
  const struct {
    const char* family;
    Changes changes;
    std::string field;
  } rows[] = {
      {"llama2", {{post, template_of({"<s>", "<s>", ""}, *llama)}}, "post_processor: "},
      {"llama2", {{post, template_of({"", "</s>", "<s>"}, *llama)}}, "post_processor: "},
      {"llama2", {{mark, "\"normalizer\":{\"type\":\"NFC\"}"}}, "normalizer: "},
      {"llama2",
       {{"\"pre_tokenizer\":null", R"("pre_tokenizer":{"type":"WhitespaceSplit"})"}},
       "pre_tokenizer: "},
      {"llama2", {{"\"ignore_merges\":false", "\"ignore_merges\":true"}}, "model.ignore_merges: "},
      {"llama2", {{"\"<0x41>\"", "\"<0xx1>\""}}, "model.byte_fallback: only 255 of the 256"},
      {"gpt2", {{"\"ignore_merges\":false", "\"ignore_merges\":true"}}, "model.ignore_merges: "},
      {"gpt2", {{"\"normalizer\":null", R"("normalizer":{"type":"Lowercase"})"}}, "normalizer: "},
      {"gpt2", {{"\"normalizer\":null", R"("normalizer":{"type":"NFC"})"}}, "normalizer: "},
      {"gpt2",
       {{"\"add_prefix_space\":false", "\"add_prefix_space\":true"}},
       "pre_tokenizer.add_prefix_space: "},
      {"gpt2",
       {{pre, cat(R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[)", level, "true},", level,
                  "false}]}")}},
       "pre_tokenizer: "},
      {"gpt2", {{pre, R"("pre_tokenizer":{"type":"Whitespace"})"}}, "pre_tokenizer: "},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(cat(row.family, " ", row.field));
    const MadeSource source = source_of(changed(row.family, row.changes));
    GgufMetadata metadata;
    const Status written = write_gguf_tokenizer(source, metadata);
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(code_name(written.error().code), code_name(Code::unsupported));
    EXPECT_THAT(written.error().message, testing::StartsWith(row.field));
  }
}

// GGUF has three keys for ids that end a text.
TEST(GgufTokenizerOptions, AllIdsThatEndATextComeBack) {
  MadeSource source = source_of(changed("gpt2", {}));
  source.config.eos_token_ids = {5, 6, 7, 8, 9};
  GgufMetadata metadata;
  ASSERT_TRUE(write_gguf_tokenizer(source, metadata).ok());
  EXPECT_THAT(metadata.keys(), testing::Contains("loom.tokenizer.eos_token_ids"));
}

TEST(GgufTokenizerOptions, WhatLlamaCppDoesOtherwiseIsANote) {
  EXPECT_THAT(gguf_tokenizer_notes(*parse_tokenizer_json(changed("gpt2", {}), "t")),
              testing::IsEmpty());
  EXPECT_THAT(gguf_tokenizer_notes(*parse_tokenizer_json(changed("qwen2", {}), "t")),
              testing::ElementsAre("llama.cpp may give other token ids: normalizer: it does not "
                                   "apply NFC to a text"));
}

// A token in the JSON of a file that is not the one of its list.
TEST(GgufTokenizerOptions, AJsonThatContradictsTheTokensIsRefused) {
  GgufMetadata metadata;
  metadata.string("tokenizer.ggml.model", "gpt2");
  metadata.strings("tokenizer.ggml.tokens", {"a", "b"});
  metadata.string(kGgufTokenizerJson,
                  R"({"version":"1.0","added_tokens":[],)"
                  R"("model":{"type":"BPE","vocab":{"a":0,"c":1},"merges":[]}})");
  const auto spec = round_trip(metadata);
  ASSERT_FALSE(spec.ok());
  EXPECT_THAT(spec.error().message,
              testing::HasSubstr("gives token 1 as 'c', and tokenizer.ggml.tokens does not"));
}

}  // namespace
}  // namespace loom::core
