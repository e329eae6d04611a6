// Files that are refused, with the exact error line. Each case replaces one part of a valid file.
#include <gtest/gtest.h>

#include "golden.hpp"

namespace loom::core {
namespace {

constexpr const char* kVocab = R"("vocab":{"a":0,"b":1,"ab":2})";
constexpr const char* kMerges = R"("merges":["a b"])";

std::string file_with(const std::string& members, const std::string& model = "") {
  const std::string body =
      model.empty() ? std::string(R"({"type":"BPE",)") + kVocab + "," + kMerges + "}" : model;
  return "{" + members + (members.empty() ? "" : ",") + "\"model\":" + body + "}";
}

std::string token(const std::string& id, const std::string& content, const std::string& more = "") {
  return R"({"id":)" + id + R"(,"content":")" + content +
         R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":)" +
         (more.empty() ? "false" : more) + R"(,"special":true})";
}

std::string tokens(const std::string& list) {
  return R"("added_tokens":[)" + list + "]";
}
std::string split(const std::string& pattern) {
  return R"("pre_tokenizer":{"type":"Split","pattern":{"Regex":")" + pattern +
         R"("},"behavior":"Isolated","invert":false})";
}
std::string bpe(const std::string& members) {
  return R"({"type":"BPE",)" + members + "}";
}

struct Rejected {
  std::string json;
  std::string error;
};

void expect_refused(const std::vector<Rejected>& cases) {
  for (const Rejected& c : cases) {
    const Result<Tokenizer> tokenizer = Tokenizer::parse(c.json, "f");
    ASSERT_FALSE(tokenizer.ok()) << c.json;
    EXPECT_EQ(tokenizer.error().str(), c.error) << c.json;
  }
}

TEST(TokenizerRejectTest, TheFileUsedByTheOtherCasesIsFine) {
  EXPECT_TRUE(Tokenizer::parse(file_with(""), "f").ok());
  EXPECT_TRUE(Tokenizer::parse(file_with(tokens(token("3", "x"))), "f").ok());
}

TEST(TokenizerRejectTest, TheTopLevel) {
  expect_refused({
      {"[]", "f: expected an object"},
      {"{}", "f: 'model' is missing"},
      {file_with(R"("version":"2.0")"), "f: version: '2.0' is not supported"},
      {file_with(R"("version":1)"), "f: version: expected a string"},
      {file_with(R"("extra":1)"), "f: unknown key 'extra'"},
      {file_with(R"("added_tokens":{})"), "f: added_tokens: expected an array"},
      {file_with(R"("added_tokens":[1])"), "f: added_tokens[0]: expected an object"},
      {file_with(R"("normalizer":1)"), "f: normalizer: expected an object"},
      {file_with(R"("normalizer":{})"), "f: normalizer: 'type' is missing"},
      {file_with(R"("decoder":[])"), "f: decoder: expected an object"},
  });
}

TEST(TokenizerRejectTest, TheModel) {
  const std::string vocab = std::string(kVocab) + ",", merges = std::string(",") + kMerges;
  expect_refused({
      {file_with("", "[]"), "f: model: expected an object"},
      {file_with("", "{}"), "f: model: 'type' is missing"},
      {file_with("", R"({"type":"Unigram"})"), "f: model: 'vocab' is missing"},
      {file_with("", R"({"type":"Unigram","vocab":[["a",-1],["b"]]})"),
       "f: model.vocab: token 1: expected an array of a string and a score"},
      {file_with("", R"({"type":"Unigram","vocab":[["a",-1],["a",-2]]})"),
       "f: model.vocab: token 'a' appears twice"},
      {file_with("", R"({"type":"Unigram","vocab":[["a",-1]],"unk_id":1})"),
       "f: model.unk_id: no token has id 1"},
      {file_with("", R"({"type":"WordPiece"})"), "f: model: 'vocab' is missing"},
      {file_with("", R"({"type":"WordLevel"})"), "f: model.type: 'WordLevel' is not supported"},
      {file_with("", R"({"type":7})"), "f: model.type: expected a string"},
      {file_with("", bpe(kMerges)), "f: model: 'vocab' is missing"},
      {file_with("", bpe(kVocab)), "f: model: 'merges' is missing"},
      {file_with("", bpe(R"("vocab":[])" + merges)), "f: model.vocab: expected an object"},
      {file_with("", bpe(vocab + R"("merges":{})")), "f: model.merges: expected an array"},
      {file_with("", bpe(vocab + R"("color":1)" + merges)), "f: model: unknown key 'color'"},
      {file_with("", bpe(vocab + R"("dropout":0.1)" + merges)),
       "f: model.dropout: 'a value other than 0' is not supported"},
      {file_with("", bpe(vocab + R"("dropout":"x")" + merges)),
       "f: model.dropout: expected a number"},
      {file_with("", bpe(vocab + R"("fuse_unk":1)" + merges)),
       "f: model.fuse_unk: expected true or false"},
      {file_with("", bpe(vocab + R"("unk_token":1)" + merges)),
       "f: model.unk_token: expected a string"},
  });
}

TEST(TokenizerRejectTest, VocabularyAndMerges) {
  const auto with_vocab = [](const std::string& vocab) {
    return file_with("", bpe("\"vocab\":{" + vocab + R"(},"merges":[])"));
  };
  const auto with_merges = [](const std::string& merges) {
    return file_with("", bpe(std::string(kVocab) + ",\"merges\":[" + merges + "]"));
  };
  expect_refused({
      {with_vocab(R"("a":-1)"),
       "f: model.vocab: token 'a': expected a token id from 0 to 16777215"},
      {with_vocab(R"("a":16777216)"),
       "f: model.vocab: token 'a': expected a token id from 0 to 16777215"},
      {with_vocab(R"("a":99999999999999999999)"),
       "f: model.vocab: token 'a': expected a token id from 0 to 16777215"},
      {with_vocab(R"("a":1.0)"),
       "f: model.vocab: token 'a': expected a token id from 0 to 16777215"},
      {with_vocab(R"("a":"1")"),
       "f: model.vocab: token 'a': expected a token id from 0 to 16777215"},
      {with_vocab(R"("a":3,"b":3)"), "f: model.vocab: token 'b': id 3 is taken already"},
      {with_merges(R"("a c")"),
       "f: model.merges: merge 0 ('a', 'c'): 'c' is not in the vocabulary"},
      {with_merges(R"("c a")"),
       "f: model.merges: merge 0 ('c', 'a'): 'c' is not in the vocabulary"},
      {with_merges(R"("a b","b a")"),
       "f: model.merges: merge 1 ('b', 'a'): 'ba' is not in the vocabulary"},
      {with_merges(R"("ab")"), "f: model.merges: merge 0: expected a string \"left right\""},
      {with_merges(R"("a b a")"), "f: model.merges: merge 0: expected a string \"left right\""},
      {with_merges(R"("a b",["a","b"])"),
       "f: model.merges: merge 1: expected a string \"left right\""},
      {with_merges(R"(["a","b"],"a b")"),
       "f: model.merges: merge 1: expected an array of two strings"},
      {with_merges(R"(["a"])"), "f: model.merges: merge 0: expected an array of two strings"},
      {with_merges(R"(["a",1])"), "f: model.merges: merge 0: expected an array of two strings"},
      {with_merges("7"), "f: model.merges: merge 0: expected an array of two strings"},
      {file_with("",
                 bpe(R"("continuing_subword_prefix":"##",)" + std::string(kVocab) + "," + kMerges)),
       "f: model.merges: merge 0 ('a', 'b'): 'b' is shorter than continuing_subword_prefix"},
  });
}

TEST(TokenizerRejectTest, AddedTokens) {
  const std::string lower = R"("normalizer":{"type":"Lowercase"},)";
  const std::string strip =
      R"("normalizer":{"type":"Strip","strip_left":true,"strip_right":true},)";
  expect_refused({
      {file_with(tokens(token("-1", "x"))),
       "f: added_tokens[0].id: expected a token id from 0 to 16777215"},
      {file_with(tokens(token("16777216", "x"))),
       "f: added_tokens[0].id: expected a token id from 0 to 16777215"},
      {file_with(tokens(R"({"id":3})")), "f: added_tokens[0]: 'content' is missing"},
      {file_with(tokens(token("3", "x", "1"))),
       "f: added_tokens[0].normalized: expected true or false"},
      {file_with(tokens(token("3", "x") + "," + token("3", "y"))),
       "f: added_tokens[1]: id 3 is taken already"},
      {file_with(tokens(token("3", "x") + "," + token("4", "x"))),
       "f: added_tokens[1]: 'x' appears twice"},
      {file_with(tokens(token("5", "ab"))),
       "f: added_tokens[0]: 'ab' has id 5 here and 2 in the vocabulary"},
      {file_with(tokens(token("2", "x"))),
       "f: added_tokens[0]: 'x' has id 2, which the vocabulary gives to 'ab'"},
      {file_with(lower + tokens(token("3", "x", "true") + "," + token("4", "X", "true"))),
       "f: added_tokens[1]: another token is 'x' when normalized"},
      {file_with(strip + tokens(token("3", " ", "true"))),
       "f: added_tokens[0].content: nothing is left of it when normalized"},
      {file_with(tokens(token("3", std::string(1025, 'x')))),
       "f: added_tokens[0].content: longer than 1024 bytes"},
  });
}

TEST(TokenizerRejectTest, StepsThatAreNotSupportedAreNamedWithTheirPath) {
  const auto in_sequence = [](const char* key, const char* list, const char* type) {
    return file_with(std::string("\"") + key + R"(":{"type":"Sequence",")" + list +
                     R"(":[{"type":")" + type + R"("}]})");
  };
  expect_refused({
      {in_sequence("normalizer", "normalizers", "ByteLevel"),
       "f: normalizer.normalizers[0].type: 'ByteLevel' is not supported"},
      {in_sequence("normalizer", "normalizers", "Precompiled"),
       "f: normalizer.normalizers[0]: 'precompiled_charsmap' is missing"},
      {file_with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"?"})"),
       "f: normalizer: precompiled_charsmap is not base64"},
      {file_with(R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"CAAAAA=="})"),
       "f: normalizer: is not a character map of SentencePiece"},
      {in_sequence("pre_tokenizer", "pretokenizers", "UnicodeScripts"),
       "f: pre_tokenizer.pretokenizers[0].type: 'UnicodeScripts' is not supported"},
      {in_sequence("decoder", "decoders", "CTC"),
       "f: decoder.decoders[0].type: 'CTC' is not supported"},
      {in_sequence("post_processor", "processors", "X"),
       "f: post_processor.processors[0].type: 'X' is not supported"},
      {file_with(R"("normalizer":{"type":"Sequence"})"), "f: normalizer: 'normalizers' is missing"},
      {file_with(R"("normalizer":{"type":"Sequence","normalizers":[],"x":1})"),
       "f: normalizer: unknown key 'x'"},
      {file_with(R"("normalizer":{"type":"NFC","form":1})"), "f: normalizer: unknown key 'form'"},
  });
}

TEST(TokenizerRejectTest, ArgumentsOfSteps) {
  expect_refused({
      {file_with(R"("normalizer":{"type":"Strip","strip_left":true})"),
       "f: normalizer: 'strip_right' is missing"},
      {file_with(R"("normalizer":{"type":"Replace","pattern":"x","content":""})"),
       "f: normalizer.pattern: expected an object"},
      {file_with(R"("normalizer":{"type":"Replace","pattern":{},"content":""})"),
       "f: normalizer.pattern: expected one of {\"String\": ...} and {\"Regex\": ...}"},
      {file_with(R"("pre_tokenizer":{"type":"Split","pattern":{"String":"x"},)"
                 R"("behavior":"Other","invert":false})"),
       "f: pre_tokenizer.behavior: 'Other' is not supported"},
      {file_with(R"("pre_tokenizer":{"type":"Metaspace","replacement":"__"})"),
       "f: pre_tokenizer.replacement: expected a string of one character"},
      {file_with(
           R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"last"})"),
       "f: pre_tokenizer.prepend_scheme: 'last' is not supported"},
      {file_with(
           R"("pre_tokenizer":{"type":"Metaspace","replacement":"_","add_prefix_space":false})"),
       "f: pre_tokenizer.add_prefix_space: false contradicts prepend_scheme"},
      {file_with(R"("decoder":{"type":"Strip","content":" ","start":-1,"stop":0})"),
       "f: decoder.start: expected an integer >= 0"},
      {file_with(R"("decoder":{"type":"BPEDecoder","suffix":""})"),
       "f: decoder.suffix: must not be empty"},
  });
}

TEST(TokenizerRejectTest, Templates) {
  const auto with_single = [](const std::string& single, const std::string& specials = "") {
    return file_with(R"("post_processor":{"type":"TemplateProcessing","single":[)" + single +
                     R"(],"pair":[],"special_tokens":{)" + specials + "}}");
  };
  const std::string cls = R"({"SpecialToken":{"id":"[C]","type_id":0}})";
  const std::string path = "f: post_processor.special_tokens";
  expect_refused({
      {with_single(cls), path + ": '[C]' is missing"},
      {with_single(cls, R"("[C]":{"id":"[C]","ids":[9],"tokens":["[C]"]})"),
       path + ".[C].ids[0]: no token has id 9"},
      {with_single(cls, R"("[C]":{"id":"[C]","ids":["a"],"tokens":["[C]"]})"),
       path + ".[C].ids[0]: expected a token id from 0 to 16777215"},
      {with_single(R"({"Sequence":{"id":"B","type_id":0}})"),
       "f: post_processor.single[0].Sequence.id: 'B' is not supported"},
      {with_single("{}"),
       "f: post_processor.single[0]: expected one of {\"Sequence\": ...} and {\"SpecialToken\": "
       "...}"},
      {file_with(R"("post_processor":{"type":"RobertaProcessing","sep":["</s>",0],"cls":["<s>"]})"),
       "f: post_processor.cls: expected an array of a string and an id"},
  });
}

TEST(TokenizerRejectTest, PatternsOutsideTheDialectAreNamed) {
  const std::string path = "f: pre_tokenizer.pattern.Regex: pattern ";
  expect_refused({
      {file_with(split("(")), path + "'(' does not compile: missing closing parenthesis"},
      {file_with(split("a**")),
       path + "'a**' does not compile: quantifier does not follow a repeatable item"},
      {file_with(split(R"(\\K)")), path + R"('\K': the escape '\K' at byte 0 is not supported)"},
      {file_with(split(R"((a)\\1)")),
       path + R"('(a)\1': the escape '\1' at byte 3 is not supported)"},
      {file_with(split("(?R)")), path + "'(?R)': this kind of group at byte 0 is not supported"},
      {file_with(split("(*FAIL)")), path + "'(*FAIL)': '(*' at byte 0 is not supported"},
      {file_with(split("[a&&]")), path + "'[a&&]': an empty class at byte 4 is not supported"},
      {file_with(split("[&&a]")), path + "'[&&a]': an empty class at byte 1 is not supported"},
      {file_with(split("[a[b]")),
       path + "'[a[b]': a class without an end at byte 5 is not supported"},
      {file_with(split("[[:alpha:]]")),
       path + "'[[:alpha:]]': a POSIX bracket at byte 1 is not supported"},
      {file_with(split("[]a]")), path + "'[]a]': an empty class at byte 1 is not supported"},
      {file_with(split("[a")), path + "'[a': a class without an end at byte 2 is not supported"},
      {file_with(split("a(?i)b")),
       path + "'a(?i)b': this kind of group at byte 1 is not supported"},
      {file_with(split("(?i:fluss)")),
       path + "'(?i:fluss)': a letter that folds to several at byte 4 is not supported"},
      {file_with(split("\\\\p{Nonsense}")),
       path + R"('\p{Nonsense}': the property 'Nonsense' at byte 0 is not supported)"},
      {file_with(split(std::string(20000, 'a'))),
       "f: pre_tokenizer.pattern.Regex: the pattern has 20000 bytes, more than 16384"},
  });
}

}  // namespace
}  // namespace loom::core
