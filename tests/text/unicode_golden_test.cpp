// Every code point of Unicode, and random strings, compared with HF `tokenizers`
// (tools/text/make_unicode_goldens.py). The file has hashes; with --full that script writes the
// hashed data, and a failing test prints the number of lines on both sides.
#include <gtest/gtest.h>

#include <functional>

#include "golden.hpp"
#include "text/normalizers/normalizer.hpp"
#include "text/normalizers/unicode.hpp"
#include "text/splitting/regex.hpp"

namespace loom::core::text {
namespace {

constexpr char32_t kEnd = 0x110000;

bool is_scalar(char32_t c) {
  return c < 0xD800 || c > 0xDFFF;
}

std::string fnv(std::string_view bytes) {
  uint64_t value = 0xCBF29CE484222325;
  for (const char c : bytes) value = (value ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string hex(char32_t c) {
  char text[9];
  std::snprintf(text, sizeof text, "%x", static_cast<unsigned>(c));
  return text;
}

// Surrogates are not characters of a text; a range does not cross them.
std::string ranges(const std::vector<bool>& in) {
  std::string out;
  for (char32_t c = 0; c < kEnd; ++c) {
    if (!is_scalar(c) || !in[c]) continue;
    const char32_t first = c;
    while (c + 1 < kEnd && is_scalar(c + 1) && in[c + 1]) ++c;
    out += hex(first) + "-" + hex(c) + "\n";
  }
  return out;
}

const std::string& everything() {
  static const std::string text = [] {
    std::string all;
    for (char32_t c = 0; c < kEnd; ++c) {
      if (is_scalar(c)) append_utf8(all, c);
    }
    return all;
  }();
  return text;
}

std::string matched(const std::string& pattern) {
  const Result<Regex> regex = Regex::compile(pattern, "p");
  if (!regex.ok()) return regex.error().str();
  std::vector<Span> spans;
  Budget budget = Budget::for_text(everything().size());
  const Status status = regex->find_all(everything(), budget, spans);
  if (!status.ok()) return status.error().str();
  std::vector<bool> in(kEnd);
  for (const Span& span : spans) {
    for (size_t at = span.begin; span.matched && at < span.end;) {
      const CodePoint c = code_point_at(everything(), at);
      in[c.value] = true;
      at += c.length;
    }
  }
  return ranges(in);
}

std::string of_each(const std::function<bool(char32_t)>& holds) {
  std::vector<bool> in(kEnd);
  for (char32_t c = 0; c < kEnd; ++c) in[c] = is_scalar(c) && holds(c);
  return ranges(in);
}

std::string changed(const std::function<std::string(const std::string&)>& rewrite) {
  std::string out;
  for (char32_t c = 0; c < kEnd; ++c) {
    if (!is_scalar(c)) continue;
    const std::string before = utf8(c), after = rewrite(before);
    if (before == after) continue;
    out += hex(c) + ">";
    for (size_t at = 0; at < after.size();) {
      const CodePoint part = code_point_at(after, at);
      out += (at == 0 ? "" : " ") + hex(part.value);
      at += part.length;
    }
    out += "\n";
  }
  return out;
}

const std::pair<std::string, NormalForm> kForms[] = {{"NFC", NormalForm::nfc},
                                                     {"NFD", NormalForm::nfd},
                                                     {"NFKC", NormalForm::nfkc},
                                                     {"NFKD", NormalForm::nfkd}};

std::string as_bert(const std::string& text, const std::string& name) {
  const bool all = name == "Bert";
  NormalizerStep step;
  step.kind = NormalizerKind::bert;
  step.clean_text = all || name == "Bert clean";
  step.spaces_ideographs = all || name == "Bert ideographs";
  if (!all) step.strips_accents = name == "Bert accents";
  step.lowercases = all;
  NormalText piece{text, 0, false};
  Budget budget = Budget::for_text(text.size());
  EXPECT_TRUE(Normalizer::make({step})->apply(piece, budget).ok());
  return piece.text;
}

std::string answer(const std::string& kind, const std::string& name) {
  if (kind == "property") return matched("\\p{" + name + "}");
  if (kind == "pattern") return matched(name);
  if (name == "Digits") return of_each(is_numeric);
  if (name == "Punctuation") return of_each(is_punctuation);
  if (name == "WhitespaceSplit") return of_each(is_white_space);
  if (name == "Whitespace") return of_each([](char32_t c) { return !is_word(c); });
  for (const auto& [form_name, form] : kForms) {
    const NormalForm f = form;
    if (form_name == name) {
      return changed([f](const std::string& text) { return normalize(text, f); });
    }
  }
  if (name.starts_with("Bert"))
    return changed([&](const std::string& t) { return as_bert(t, name); });
  return changed([](const std::string& text) {
    std::string out;
    append_lower(out, code_point_at(text, 0).value);
    return out;
  });
}

TEST(UnicodeGolden, EveryCodePointIsInTheClassesOfTheReferenceLibrary) {
  const JsonValue golden = read_golden("unicode.json");
  const JsonValue& rows = member(golden, "every_code_point");
  ASSERT_GT(rows.elements().size(), 300U);
  for (const JsonValue& row : rows.elements()) {
    const std::string kind = member(row, "kind").text(), name = member(row, "name").text();
    const std::string lines = answer(kind, name);
    EXPECT_EQ(fnv(lines), member(row, "hash").text())
        << kind << " " << name << ": " << std::count(lines.begin(), lines.end(), '\n')
        << " lines, not " << *member(row, "lines").as_int("lines");
  }
}

TEST(UnicodeGolden, RandomStringsHaveTheirNormalForms) {
  const JsonValue golden = read_golden("unicode.json");
  const JsonValue& strings = member(golden, "strings");
  const auto texts = member(strings, "texts").elements();
  for (const auto& [name, form] : kForms) {
    const auto hashes = member(member(strings, "forms"), name).elements();
    ASSERT_EQ(hashes.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(fnv(normalize(texts[i].text(), form)), hashes[i].text()) << name << " of " << i;
    }
  }
  const auto hashes = member(member(strings, "forms"), "Bert").elements();
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(fnv(as_bert(texts[i].text(), "Bert")), hashes[i].text()) << "Bert of " << i;
}

TEST(UnicodeGolden, RandomStringsHaveTheirIds) {
  const JsonValue golden = read_golden("unicode.json");
  const JsonValue& strings = member(golden, "strings");
  const auto texts = member(strings, "texts").elements();
  ASSERT_GT(member(strings, "families").members().size(), 8U);
  for (const auto& [family, hashes] : member(strings, "families").members()) {
    const Tokenizer tokenizer = load_tokenizer(member(read_golden(family + ".json"), "tokenizer"));
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::vector<TokenId> found = *tokenizer.encode(texts[i].text());
      std::string ids;
      for (const TokenId id : found) ids += (ids.empty() ? "" : " ") + std::to_string(id);
      EXPECT_EQ(fnv(ids), hashes.elements()[i].text()) << family << " of text " << i;
    }
  }
}

}  // namespace
}  // namespace loom::core::text
