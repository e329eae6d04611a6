// The parts of JSON texts, independent of the schema.
#include <algorithm>

#include "grammar/pattern.hpp"
#include "grammar/schemas/numbers.hpp"
#include "grammar/schemas/schema_reader.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::grammar {
namespace {

constexpr uint32_t kMaxIndent = 32, kMaxTabs = 8;
constexpr uint32_t kNoLimit = Builder::kEndless;

text::CharSet plain_characters() {
  return text::CharSet(std::vector<text::CodeRange>{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x10FFFF}});
}

}  // namespace

ExprId JsonParts::once(const char* name, ExprId (JsonParts::*make)()) {
  const auto [found, is_new] = rules_.try_emplace(name, 0);
  if (is_new) {
    const RuleId rule = found->second = b.new_rule(name);
    b.define(rule, (this->*make)());
    return b.ref(rule);
  }
  return b.ref(found->second);
}

ExprId JsonParts::make_space() {
  if (!options.spaces) return b.empty();
  const ExprId indent =
      b.choice({b.repeat(b.literal(" "), 0, kMaxIndent), b.repeat(b.literal("\t"), 1, kMaxTabs)});
  return b.choice({b.empty(), b.literal(" "), b.sequence({b.literal("\n"), indent})});
}
ExprId JsonParts::space() {
  return once("space", &JsonParts::make_space);
}
ExprId JsonParts::comma() {
  return b.sequence({b.literal(","), space()});
}
ExprId JsonParts::colon() {
  const ExprId sign = b.literal(":");
  return options.spaces ? b.sequence({sign, b.optional(b.literal(" "))}) : sign;
}

// Surrogates come in pairs, which are one character.
ExprId JsonParts::make_character() {
  const auto hex = [&](const char* digits) {
    std::vector<text::CodeRange> ranges;
    for (const char* d = digits; *d != 0; ++d)
      ranges.push_back({static_cast<char32_t>(*d), static_cast<char32_t>(*d)});
    return b.chars(text::CharSet(std::move(ranges)));
  };
  const ExprId any = hex("0123456789abcdefABCDEF");
  const ExprId not_d = hex("0123456789abcefABCEF"), d = hex("dD");
  const ExprId low = hex("01234567"), high8 = hex("89abAB"), highc = hex("cdefCDEF");
  const ExprId u = b.literal("\\u");
  const ExprId pair = b.sequence({u, d, high8, any, any, u, d, highc, any, any});
  return b.choice({b.chars(plain_characters()), b.sequence({b.literal("\\"), hex("\"\\/bfnrt")}),
                   b.sequence({u, not_d, any, any, any}), b.sequence({u, d, low, any, any}), pair});
}
ExprId JsonParts::character() {
  return once("character", &JsonParts::make_character);
}
ExprId JsonParts::make_string() {
  return b.sequence({b.literal("\""), b.repeat(character(), 0, kNoLimit), b.literal("\"")});
}
ExprId JsonParts::string() {
  return once("string", &JsonParts::make_string);
}

ExprId JsonParts::list(ExprId one, uint32_t least, uint32_t most) {
  if (most == 0) return b.empty();
  const ExprId next = b.sequence({comma(), one});
  const uint32_t more = most == kNoLimit ? kNoLimit : most - 1;
  const ExprId some = b.sequence({one, b.repeat(next, least > 0 ? least - 1 : 0, more)});
  return least == 0 ? b.optional(some) : some;
}
ExprId JsonParts::wrapped(const char* open, ExprId inside, const char* close) {
  return b.sequence({b.literal(open), space(), inside, space(), b.literal(close)});
}

ExprId JsonParts::make_object() {
  const ExprId member = b.sequence({string(), colon(), value()});
  return wrapped("{", list(b.named("member", member), 0, kNoLimit), "}");
}
ExprId JsonParts::object() {
  return once("object", &JsonParts::make_object);
}
ExprId JsonParts::make_array() {
  return wrapped("[", list(value(), 0, kNoLimit), "]");
}
ExprId JsonParts::array() {
  return once("array", &JsonParts::make_array);
}
ExprId JsonParts::make_value() {
  return b.choice({object(), array(), string(), add_reals(b, {}), b.literal("true"),
                   b.literal("false"), b.literal("null")});
}
ExprId JsonParts::value() {
  return once("value", &JsonParts::make_value);
}

ExprId JsonParts::name(const std::string& text) {
  return b.literal("\"" + json_escaped(text) + "\"");
}

// The expression after a prefix that several names share; `rests` are the remaining parts. It is an
// end if no name ends there, a character that continues no name, or one that continues some. Names
// with escapes are excluded: they could spell one of the names differently.
ExprId JsonParts::name_end(const std::vector<std::string>& rests) {
  std::map<char32_t, std::vector<std::string>> by_first;
  bool ends = false;
  for (const std::string& rest : rests) {
    ends |= rest.empty();
    if (rest.empty()) continue;
    const text::CodePoint c = text::code_point_at(rest, 0);
    by_first[c.value].push_back(rest.substr(c.length));
  }
  const ExprId end = b.literal("\"");
  const text::CharSet plain = plain_characters();
  const text::CharSet escaped = plain.complement();
  std::vector<text::CodeRange> others(escaped.ranges().begin(), escaped.ranges().end());
  std::vector<ExprId> choices;
  if (!ends) choices.push_back(end);
  for (const auto& [first, next] : by_first) {
    others.push_back({first, first});
    if (plain.contains(first))
      choices.push_back(b.sequence({b.chars(first, first), name_end(next)}));
  }
  const ExprId any = b.repeat(b.chars(plain), 0, kNoLimit);
  choices.push_back(b.sequence({b.chars(text::CharSet(std::move(others)).complement()), any, end}));
  return b.choice(std::move(choices));
}
ExprId JsonParts::other_name(const std::vector<std::string>& names) {
  if (names.empty()) return string();
  return b.sequence({b.literal("\""), name_end(names)});
}

}  // namespace loom::core::grammar
