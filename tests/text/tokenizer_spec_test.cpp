// TokenizerSpec: reading and writing tokenizer.json, and tokenizers made in code. The references
// are the ids of HF `tokenizers` in the goldens, and a simple implementation of merging.
#include "text/tokenizer_spec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "golden.hpp"

namespace loom::core {
namespace {

using Random = std::mt19937;

size_t below(Random& random, size_t count) {
  return std::uniform_int_distribution<size_t>(0, count - 1)(random);
}
bool coin(Random& random) {
  return below(random, 2) == 1;
}
template <class T, size_t n>
const T& one_of(Random& random, const T (&list)[n]) {
  return list[below(random, n)];
}

// The same spec without names for messages, which are not written.
TokenizerSpec without_names(TokenizerSpec spec) {
  spec.where.clear();
  for (auto& step : spec.normalizer) step.where.clear(), step.find.where.clear();
  for (auto& step : spec.pre_tokenizer) step.where.clear(), step.find.where.clear();
  for (auto& step : spec.decoder) step.where.clear(), step.find.where.clear();
  if (!spec.post_processor) return spec;
  for (auto* parts : {&*spec.post_processor, &spec.pair_processor})
    for (auto& part : *parts)
      for (auto& id : part.ids) id.where.clear();
  return spec;
}

TEST(TokenizerSpecTest, WrittenAndReadAgainItIsTheSameAndGivesTheIdsOfTheReferenceLibrary) {
  const JsonValue texts = read_golden("texts.json");
  for (const char* family : kFamilies) {
    SCOPED_TRACE(family);
    const JsonValue golden = read_golden(std::string("family_") + family + ".json");
    const auto spec = parse_tokenizer_json(dump_json(member(golden, "tokenizer")), "t");
    ASSERT_TRUE(spec.ok()) << spec.error().str();
    const auto again = parse_tokenizer_json(tokenizer_json(*spec), "t");
    ASSERT_TRUE(again.ok()) << again.error().str();
    EXPECT_TRUE(without_names(*again) == without_names(*spec));
    const auto tokenizer = Tokenizer::make(*again);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
    for (size_t i = 0; i < texts.elements().size(); ++i) {
      const std::string& text = texts.elements()[i].text();
      const std::vector<TokenId> ids = ids_of(member(golden, "encoded").elements()[i]);
      EXPECT_EQ(*tokenizer->encode(text), ids) << text;
    }
  }
}

// ---- random ones ----

std::string letters(Random& random, size_t most) {
  static constexpr const char* kLetters[] = {"a", "b", " ", "\n", "\"", "\xC3\xA9", "\xE2\x96\x81"};
  std::string out = one_of(random, kLetters);
  for (size_t n = below(random, most); n > 0; --n) out += one_of(random, kLetters);
  return out;
}

text::PatternSpec random_pattern(Random& random) {
  const bool regex = coin(random);
  return {regex ? "\\p{L}+|\\s" : letters(random, 3), regex, {}};
}

text::NormalizerStep random_normalizer(Random& random) {
  using enum text::NormalizerKind;
  text::NormalizerStep step;
  step.kind = static_cast<text::NormalizerKind>(below(random, 5));
  if (step.kind == form) step.form = static_cast<text::NormalForm>(below(random, 4));
  if (step.kind == replace) step.find = random_pattern(random);
  if (step.kind == replace || step.kind == prepend) step.content = letters(random, 3);
  if (step.kind == strip) step.left = coin(random), step.right = coin(random);
  return step;
}

text::PreTokenizerStep random_pre_tokenizer(Random& random) {
  using enum text::PreTokenizerKind;
  text::PreTokenizerStep step;
  step.kind = static_cast<text::PreTokenizerKind>(below(random, 7));
  if (step.kind == split) step.find = random_pattern(random), step.invert = coin(random);
  if (step.kind == split || step.kind == punctuation)
    step.behavior = static_cast<text::SplitBehavior>(below(random, 5));
  if (step.kind == digits)
    step.behavior = coin(random) ? text::SplitBehavior::isolated : text::SplitBehavior::contiguous;
  if (step.kind == white_space) step.behavior = text::SplitBehavior::removed;
  if (step.kind == byte_level) step.prefix_space = coin(random);
  if (step.kind == byte_level || step.kind == metaspace) step.splits = coin(random);
  if (step.kind != metaspace) return step;
  step.prepend = static_cast<text::PrependScheme>(below(random, 3));
  step.replacement = coin(random) ? "_" : "\xE2\x96\x81";
  return step;
}

text::DecoderStep random_decoder(Random& random) {
  using enum text::DecoderKind;
  text::DecoderStep step;
  step.kind = static_cast<text::DecoderKind>(1 + below(random, 8));
  if (step.kind == replace) step.find = random_pattern(random);
  if (step.kind == replace || step.kind == word_piece || step.kind == word_suffix)
    step.content = letters(random, 2);
  if (step.kind == metaspace || step.kind == strip)
    step.character = coin(random) ? U'_' : U'\u2581';
  if (step.kind == metaspace) step.keeps_first = coin(random);
  if (step.kind == strip) step.start = below(random, 3), step.stop = below(random, 3);
  if (step.kind == word_piece) step.cleanup = coin(random);
  return step;
}

// Letters, and a merge for each further token, so that no two make the same one.
text::BpeSpec random_model(Random& random, size_t merges) {
  text::BpeSpec model;
  for (const char* letter : {"a", "b", "c", "d"})
    model.vocabulary.emplace_back(letter, static_cast<int32_t>(model.vocabulary.size()));
  for (size_t tries = 0; tries < merges; ++tries) {
    const std::string left = model.vocabulary[below(random, model.vocabulary.size())].first;
    const std::string right = model.vocabulary[below(random, model.vocabulary.size())].first;
    const std::string whole = left + right;
    const auto known = [&](const auto& entry) { return entry.first == whole; };
    if (std::any_of(model.vocabulary.begin(), model.vocabulary.end(), known)) continue;
    model.vocabulary.emplace_back(whole, static_cast<int32_t>(model.vocabulary.size()));
    model.merges.emplace_back(left, right);
  }
  return model;
}

TokenizerSpec random_spec(Random& random) {
  TokenizerSpec spec;
  spec.model = random_model(random, 12);
  spec.model.fuse_unk = coin(random);
  spec.model.byte_fallback = coin(random);
  spec.model.ignore_merges = coin(random);
  if (coin(random)) spec.model.unk_token = letters(random, 3);
  if (coin(random)) spec.model.suffix = "</w>";
  if (coin(random))
    for (size_t i = 0; i < spec.model.merges.size(); ++i)
      spec.model.ranks.push_back(static_cast<int32_t>(below(random, 9)));
  for (int32_t id = 100; below(random, 3) > 0; ++id) {
    spec.added.push_back({id, letters(random, 4), coin(random), coin(random), coin(random),
                          coin(random), coin(random)});
  }
  while (coin(random)) spec.normalizer.push_back(random_normalizer(random));
  while (coin(random)) spec.pre_tokenizer.push_back(random_pre_tokenizer(random));
  while (coin(random)) spec.decoder.push_back(random_decoder(random));
  if (spec.decoder.empty() && coin(random))
    spec.decoder.push_back({.kind = text::DecoderKind::join_spaces});
  if (coin(random)) return spec;
  spec.post_processor.emplace();
  for (size_t n = below(random, 3); n > 0; --n) {
    const auto id = static_cast<int32_t>(below(random, 4));
    const std::string name = "<" + std::to_string(id) + ">";
    spec.post_processor->push_back({false, name, {{id, name, ""}, {0, "a", ""}}});
  }
  spec.post_processor->push_back({true, "A", {}});
  return spec;
}

TEST(TokenizerSpecTest, OfAnyStepsIsReadBackAsItWasWritten) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    Random random(seed);
    const TokenizerSpec spec = random_spec(random);
    const std::string json = tokenizer_json(spec);
    const auto again = parse_tokenizer_json(json, "t");
    ASSERT_TRUE(again.ok()) << again.error().str() << "\n" << json;
    EXPECT_TRUE(without_names(*again) == without_names(spec)) << json;
    // Both give the same tokenizer, or an error.
    const auto a = Tokenizer::make(spec), b = Tokenizer::make(*again);
    ASSERT_EQ(a.ok(), b.ok()) << json;
    if (!a.ok()) continue;
    const auto x = a->encode("ab cd\n\xC3\xA9 abcd"), y = b->encode("ab cd\n\xC3\xA9 abcd");
    ASSERT_EQ(x.ok(), y.ok()) << json;
    EXPECT_TRUE(!x.ok() || *x == *y) << json;
  }
}

// The pair of the lowest rank, the leftmost of several, until none is left.
std::vector<TokenId> merged_plainly(const text::BpeSpec& model, const std::string& word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  for (;;) {
    size_t best = model.merges.size(), at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t m = 0; m < best; ++m) {
        if (model.merges[m].first == symbols[i] && model.merges[m].second == symbols[i + 1])
          best = m, at = i;
      }
    }
    if (best == model.merges.size()) break;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::vector<TokenId> ids;
  for (const std::string& symbol : symbols)
    for (const auto& [token, id] : model.vocabulary)
      if (token == symbol) ids.push_back(id);
  return ids;
}

TEST(TokenizerSpecTest, MadeInCodeItMergesAsThePlainWayDoes) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Random random(seed);
    TokenizerSpec spec;
    spec.model = random_model(random, 20);
    const auto tokenizer = Tokenizer::make(spec);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().str();
    for (int i = 0; i < 10; ++i) {
      std::string word;
      for (size_t n = below(random, 24); n > 0; --n) word += "abcd"[below(random, 4)];
      EXPECT_EQ(*tokenizer->encode(word), merged_plainly(spec.model, word)) << word;
    }
  }
}

TEST(TokenizerSpecTest, WhatDoesNotFitTogetherIsRefusedByItsPath) {
  const auto refusal = [](const std::function<void(TokenizerSpec&)>& change) {
    TokenizerSpec spec;
    spec.where = "f";
    spec.model.vocabulary = {{"a", 0}, {"b", 1}, {"ab", 2}};
    spec.model.merges = {{"a", "b"}};
    change(spec);
    const auto tokenizer = Tokenizer::make(spec);
    return tokenizer.ok() ? std::string("accepted") : tokenizer.error().str();
  };
  EXPECT_EQ(refusal([](auto&) {}), "accepted");
  EXPECT_EQ(refusal([](auto& s) { s.model.vocabulary[1].second = -1; }),
            "f: model.vocab: token 'b': expected a token id from 0 to 16777215");
  EXPECT_EQ(refusal([](auto& s) { s.model.vocabulary[1].second = 2; }),
            "f: model.vocab: token 'ab': id 2 is taken already");
  EXPECT_EQ(refusal([](auto& s) { s.model.vocabulary.emplace_back("a", 7); }),
            "f: model.vocab: token 'a' appears twice");
  EXPECT_EQ(refusal([](auto& s) { s.model.merges.emplace_back("b", "a"); }),
            "f: model.merges: merge 1 ('b', 'a'): 'ba' is not in the vocabulary");
  EXPECT_EQ(refusal([](auto& s) {
              s.model.ranks = {1, 2};
            }),
            "f: model.merge_ranks: expected one rank for each merge");
  EXPECT_EQ(refusal([](auto& s) { s.added = {{.id = 3, .content = "ab"}}; }),
            "f: added_tokens[0]: 'ab' has id 3 here and 2 in the vocabulary");
  EXPECT_EQ(refusal([](auto& s) { s.added = {{.id = -4, .content = "x"}}; }),
            "f: added_tokens[0]: expected a token id from 0 to 16777215");
}

}  // namespace
}  // namespace loom::core
