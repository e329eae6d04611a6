// Builder: a grammar as expressions and rules, independent of its source text. Expressions are made
// bottom up and may be used several times; rules may refer to each other, also in cycles. Readers
// (gbnf.hpp, json_schema.hpp) add to a builder. So one grammar can combine several: the union of
// schemas, or free text until a trigger and then a schema.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "text/normalizers/char_set.hpp"

namespace loom::core::grammar {

using ExprId = int32_t;
using RuleId = int32_t;

enum class ExprKind : uint8_t { literal, chars, sequence, choice, repeat, rule, free_text };

// A text that starts another expression.
struct Trigger {
  std::string text;
  ExprId then = 0;
};

struct Expr {
  ExprKind kind = ExprKind::sequence;
  std::string text;              // literal: bytes
  text::CharSet chars;           // one code point
  std::vector<ExprId> parts;     // sequence, choice; repeat: one
  uint32_t least = 0, most = 0;  // repeat
  RuleId rule = 0;
  std::vector<Trigger> triggers;  // free_text
  bool again = false;             // free_text: it continues after a trigger's expression
  bool must = false;              // free_text: it may not end before a trigger
};

struct GrammarRule {
  std::string name;
  ExprId body = -1;  // -1 means not defined
};

class Builder {
 public:
  static constexpr uint32_t kEndless = UINT32_MAX;
  static constexpr size_t kMaxExprs = size_t{1} << 20;

  ExprId literal(std::string bytes);
  ExprId chars(text::CharSet set);
  ExprId chars(char32_t first, char32_t last) {
    return chars(text::CharSet(std::vector<text::CodeRange>{{first, last}}));
  }
  ExprId sequence(std::vector<ExprId> parts);  // of no parts: the empty text
  ExprId choice(std::vector<ExprId> parts);    // of no parts: matches nothing
  ExprId repeat(ExprId part, uint32_t least, uint32_t most);
  ExprId optional(ExprId part) { return repeat(part, 0, 1); }
  ExprId empty() { return sequence({}); }

  RuleId new_rule(std::string name);
  void define(RuleId rule, ExprId body) { rules_[static_cast<size_t>(rule)].body = body; }
  ExprId ref(RuleId rule);
  // An expression for `body` that is compiled once, however often it is used.
  ExprId named(std::string name, ExprId body);

  // Any bytes in which each trigger is followed by its `then`. A text may end anywhere before a
  // trigger. After `then` it ends or, with `again`, continues as before.
  ExprId free_text(std::vector<Trigger> triggers, bool again);
  // Any bytes up to and including the first occurrence of `text`.
  ExprId until(std::string text);
  // Any bytes in which none of the texts occurs.
  ExprId text_without(const std::vector<std::string>& texts);

  const std::vector<Expr>& exprs() const { return exprs_; }
  const std::vector<GrammarRule>& rules() const { return rules_; }
  // More than kMaxExprs were requested; the excess ones are missing.
  bool overflowed() const { return overflowed_; }

 private:
  ExprId add(Expr expr);
  std::vector<Expr> exprs_;
  std::vector<GrammarRule> rules_;
  bool overflowed_ = false;
};

}  // namespace loom::core::grammar
