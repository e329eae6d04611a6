#include "grammar/builder.hpp"

namespace loom::core::grammar {

ExprId Builder::add(Expr expr) {
  if (exprs_.size() >= kMaxExprs) {
    overflowed_ = true;
    return 0;
  }
  exprs_.push_back(std::move(expr));
  return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Builder::literal(std::string bytes) {
  Expr e;
  e.kind = ExprKind::literal;
  e.text = std::move(bytes);
  return add(std::move(e));
}

ExprId Builder::chars(text::CharSet set) {
  Expr e;
  e.kind = ExprKind::chars;
  e.chars = std::move(set);
  return add(std::move(e));
}

ExprId Builder::sequence(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  Expr e;
  e.kind = ExprKind::sequence;
  e.parts = std::move(parts);
  return add(std::move(e));
}

ExprId Builder::choice(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  Expr e;
  e.kind = ExprKind::choice;
  e.parts = std::move(parts);
  return add(std::move(e));
}

ExprId Builder::repeat(ExprId part, uint32_t least, uint32_t most) {
  if (least == 1 && most == 1) return part;
  Expr e;
  e.kind = ExprKind::repeat;
  e.parts = {part};
  e.least = least;
  e.most = most;
  return add(std::move(e));
}

RuleId Builder::new_rule(std::string name) {
  rules_.push_back({std::move(name), -1});
  return static_cast<RuleId>(rules_.size() - 1);
}

ExprId Builder::ref(RuleId rule) {
  Expr e;
  e.kind = ExprKind::rule;
  e.rule = rule;
  return add(std::move(e));
}

ExprId Builder::named(std::string name, ExprId body) {
  const RuleId rule = new_rule(std::move(name));
  define(rule, body);
  return ref(rule);
}

ExprId Builder::free_text(std::vector<Trigger> triggers, bool again) {
  Expr e;
  e.kind = ExprKind::free_text;
  e.triggers = std::move(triggers);
  e.again = again;
  return add(std::move(e));
}

ExprId Builder::until(std::string text) {
  Expr e;
  e.kind = ExprKind::free_text;
  e.triggers.push_back({std::move(text), empty()});
  e.must = true;
  return add(std::move(e));
}

ExprId Builder::text_without(const std::vector<std::string>& texts) {
  const ExprId never = choice({});
  std::vector<Trigger> triggers;
  for (const std::string& text : texts) triggers.push_back({text, never});
  return free_text(std::move(triggers), false);
}

}  // namespace loom::core::grammar
