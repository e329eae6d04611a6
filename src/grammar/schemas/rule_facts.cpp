#include "grammar/schemas/rule_facts.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace loom::core::grammar {
namespace {

constexpr size_t kMaxRules = 16384;

// Facts only ever turn true, so repeating until nothing changes terminates. Parts precede their
// containers; only rules need more than one round.
class FactFinder {
 public:
  explicit FactFinder(const Builder& builder) : b_(builder) {
    facts_.may_be_empty.resize(b_.exprs().size());
    facts_.has_text.resize(b_.exprs().size());
    seen_.resize(b_.exprs().size());
  }

  Result<RuleFacts> find() {
    for (const GrammarRule& rule : b_.rules()) {
      if (rule.body < 0) return invalid(cat("the rule ", printable(rule.name), " is not defined"));
    }
    if (b_.rules().size() > kMaxRules)
      return invalid(cat("the grammar has ", b_.rules().size(), " rules, more than ", kMaxRules));
    // In both directions, so that a chain of rules takes one round in any order.
    const size_t n = b_.exprs().size();
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < n; ++i) changed |= look(i);
      for (size_t i = n; i-- > 0;) changed |= look(i);
    }
    LOOM_TRY(find_left_recursion());
    return std::move(facts_);
  }

 private:
  bool is_empty(ExprId id) const { return facts_.may_be_empty[static_cast<size_t>(id)]; }
  bool is_text(ExprId id) const { return facts_.has_text[static_cast<size_t>(id)]; }
  ExprId body(const Expr& e) const { return b_.rules()[static_cast<size_t>(e.rule)].body; }

  // True if a new fact of expression i was found.
  bool look(size_t i) {
    const Expr& e = b_.exprs()[i];
    bool changed = false;
    if (!facts_.may_be_empty[i] && empty(e)) facts_.may_be_empty[i] = changed = true;
    if (!facts_.has_text[i] && text(e)) facts_.has_text[i] = changed = true;
    return changed;
  }

  bool empty(const Expr& e) const {
    const auto one = [&](ExprId id) { return is_empty(id); };
    switch (e.kind) {
      case ExprKind::literal: return e.text.empty();
      case ExprKind::chars: return false;
      case ExprKind::sequence: return std::ranges::all_of(e.parts, one);
      case ExprKind::choice: return std::ranges::any_of(e.parts, one);
      case ExprKind::repeat: return e.least == 0 || is_empty(e.parts[0]);
      case ExprKind::rule: return is_empty(body(e));
      case ExprKind::free_text: return !e.must;
    }
    return false;
  }

  bool text(const Expr& e) const {
    const auto one = [&](ExprId id) { return is_text(id); };
    switch (e.kind) {
      case ExprKind::literal: return true;
      case ExprKind::chars: return !e.chars.ranges().empty();
      case ExprKind::sequence: return std::ranges::all_of(e.parts, one);
      case ExprKind::choice: return std::ranges::any_of(e.parts, one);
      case ExprKind::repeat: return e.least == 0 || is_text(e.parts[0]);
      case ExprKind::rule: return is_text(body(e));
      case ExprKind::free_text:
        return !e.must ||
               std::ranges::any_of(e.triggers, [&](const Trigger& t) { return is_text(t.then); });
    }
    return false;
  }

  // Rules that occur in `id` before any byte is read.
  void first_rules(ExprId id, std::vector<RuleId>& out) {
    std::vector<ExprId> open = {id};
    ++walk_;
    while (!open.empty()) {
      const ExprId at = open.back();
      open.pop_back();
      if (std::exchange(seen_[static_cast<size_t>(at)], walk_) == walk_) continue;
      const Expr& e = b_.exprs()[static_cast<size_t>(at)];
      if (e.kind == ExprKind::rule) out.push_back(e.rule);
      for (const ExprId part : e.parts) {
        open.push_back(part);
        if (e.kind == ExprKind::sequence && !is_empty(part)) break;
      }
    }
  }

  // A depth-first walk over the rules; a rule that is reached while it is open begins with itself.
  Status find_left_recursion() {
    const size_t n = b_.rules().size();
    std::vector<uint8_t> state(n);  // 0 not visited, 1 open, 2 done
    std::vector<std::vector<RuleId>> firsts(n);
    for (size_t i = 0; i < n; ++i) first_rules(b_.rules()[i].body, firsts[i]);
    for (size_t root = 0; root < n; ++root) {
      std::vector<std::pair<size_t, size_t>> path;
      if (state[root] == 0) path.push_back({root, 0}), state[root] = 1;
      while (!path.empty()) {
        auto& [rule, next] = path.back();
        if (next == firsts[rule].size()) {
          state[rule] = 2;
          path.pop_back();
          continue;
        }
        const auto to = static_cast<size_t>(firsts[rule][next++]);
        if (state[to] == 1) {
          return invalid(cat("the rule ", printable(b_.rules()[to].name),
                             " begins with itself; write it as a repetition: a ::= b (\",\" b)*"));
        }
        if (state[to] == 0) state[to] = 1, path.push_back({to, 0});
      }
    }
    return {};
  }

  const Builder& b_;
  RuleFacts facts_;
  std::vector<uint32_t> seen_;  // per expression: the last walk that visited it
  uint32_t walk_ = 0;
};

}  // namespace

Result<RuleFacts> rule_facts(const Builder& builder) {
  return FactFinder(builder).find();
}

}  // namespace loom::core::grammar
