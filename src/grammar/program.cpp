#include "grammar/program.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.hpp"
#include "grammar/schemas/rule_facts.hpp"
#include "grammar/utf8_ranges.hpp"

namespace loom::core::grammar {
namespace {

constexpr size_t kMaxInstrs = size_t{1} << 20;
constexpr size_t kMaxTargets = size_t{4} << 20;
constexpr int kMaxNesting = 512;
// An empty body is tried this often without reading a byte.
constexpr uint32_t kMaxEmptyTimes = 64;

}  // namespace

// Compiles each expression from its end, so that its continuation is known.
class Compiler {
 public:
  Compiler(const Builder& builder, const RuleFacts& facts) : b_(builder), facts_(facts) {}

  Result<std::shared_ptr<const Program>> run(ExprId root) {
    dead_ = split({});
    rules_.assign(b_.rules().size(), -1);
    const int32_t end = ret();
    program_->start_ = emit(root, end, 0);
    // Rules are compiled here, not at their first use: no recursion over rules.
    while (!open_.empty() && error_.empty()) {
      const RuleId rule = open_.back();
      open_.pop_back();
      const int32_t to = emit(b_.rules()[static_cast<size_t>(rule)].body, end, 0);
      program_->code_[static_cast<size_t>(rules_[static_cast<size_t>(rule)])] = jump_to(to);
    }
    if (!error_.empty()) return invalid(error_);
    return std::shared_ptr<const Program>(std::move(program_));
  }

 private:
  const Expr& at(ExprId id) const { return b_.exprs()[static_cast<size_t>(id)]; }

  int32_t add(Instr instr) {
    if (program_->code_.size() >= kMaxInstrs) return too_large();
    program_->code_.push_back(instr);
    return static_cast<int32_t>(program_->code_.size() - 1);
  }
  int32_t too_large() {
    error_ = "the grammar is too large";
    return 0;
  }
  int32_t ret() { return add({Op::ret, 0, 0, 0, 0}); }
  std::pair<int32_t, int32_t> store(const std::vector<int32_t>& to) {
    std::vector<int32_t>& all = program_->targets_;
    if (all.size() + to.size() > kMaxTargets) too_large();
    const auto begin = static_cast<int32_t>(all.size());
    all.insert(all.end(), to.begin(), to.end());
    return {begin, static_cast<int32_t>(all.size())};
  }
  int32_t split(const std::vector<int32_t>& to) {
    const auto [begin, end] = store(to);
    return add({Op::split, begin, end, 0, 0});
  }
  Instr jump_to(int32_t to) {
    const auto [begin, end] = store({to});
    return {Op::split, begin, end, 0, 0};
  }
  int32_t byte(const ByteSet& set, int32_t next) {
    const auto [found, is_new] =
        set_ids_.try_emplace(set, static_cast<int32_t>(program_->sets_.size()));
    if (is_new) program_->sets_.push_back(set);
    return add({Op::byte, found->second, next, 0, 0});
  }

  int32_t emit(ExprId id, int32_t next, int depth) {
    if (!error_.empty() || !facts_.has_text[static_cast<size_t>(id)]) return dead_;
    if (depth > kMaxNesting) {
      error_ = "the grammar is nested too deep";
      return dead_;
    }
    const Expr& e = at(id);
    switch (e.kind) {
      case ExprKind::literal: return literal(e.text, next);
      case ExprKind::chars: return chars(e.chars, next);
      case ExprKind::sequence: {
        for (size_t i = e.parts.size(); i-- > 0;) next = emit(e.parts[i], next, depth + 1);
        return next;
      }
      case ExprKind::choice: {
        std::vector<int32_t> to;
        for (const ExprId part : e.parts) {
          if (facts_.has_text[static_cast<size_t>(part)]) to.push_back(emit(part, next, depth + 1));
        }
        return split(to);
      }
      case ExprKind::repeat: return repeat(e, next, depth);
      case ExprKind::rule: return rule(e.rule, next);
      case ExprKind::free_text: return free_text(e, next, depth);
    }
    return dead_;
  }

  int32_t literal(std::string_view text, int32_t next) {
    for (size_t i = text.size(); i-- > 0;) {
      ByteSet one;
      one.set(static_cast<unsigned char>(text[i]));
      next = byte(one, next);
    }
    return next;
  }

  // Sequences with the same rest share it; those of one byte are one set.
  int32_t chars(const text::CharSet& set, int32_t next) {
    std::map<std::vector<std::pair<uint8_t, uint8_t>>, ByteSet> by_rest;
    for (const Utf8Range& range : utf8_ranges(set)) {
      std::vector<std::pair<uint8_t, uint8_t>> rest;
      for (size_t i = 1; i < range.length; ++i)
        rest.emplace_back(range.parts[i].first, range.parts[i].last);
      ByteSet& first = by_rest[rest];
      for (int b = range.parts[0].first; b <= range.parts[0].last; ++b)
        first.set(static_cast<size_t>(b));
    }
    std::vector<int32_t> to;
    for (const auto& [rest, first] : by_rest) {
      int32_t after = next;
      for (size_t i = rest.size(); i-- > 0;) {
        ByteSet part;
        for (int b = rest[i].first; b <= rest[i].second; ++b) part.set(static_cast<size_t>(b));
        after = byte(part, after);
      }
      to.push_back(byte(first, after));
    }
    return to.size() == 1 ? to[0] : split(to);
  }

  int32_t repeat(const Expr& e, int32_t next, int depth) {
    if (e.most == 0 || !facts_.has_text[static_cast<size_t>(e.parts[0])]) return next;
    const bool may_be_empty = facts_.may_be_empty[static_cast<size_t>(e.parts[0])];
    const uint32_t least = may_be_empty ? 0 : e.least;
    if (e.most == 1) return optional(e.parts[0], least, next, depth);
    if (e.most == Builder::kEndless && least <= 1) {
      const int32_t choice = add({Op::split, 0, 0, 0, 0});
      const int32_t body = emit(e.parts[0], choice, depth + 1);
      const auto [begin, end] = store({body, next});
      program_->code_[static_cast<size_t>(choice)] = {Op::split, begin, end, 0, 0};
      return least == 0 ? choice : body;
    }
    if (may_be_empty && e.most > kMaxEmptyTimes) {
      error_ = cat("a repetition of up to ", e.most,
                   " times is of something that may be empty; let it have a character, or repeat "
                   "it without a limit");
      return dead_;
    }
    const int32_t loop = add({Op::loop, 0, next, least, e.most});
    const int32_t again = add({Op::again, loop, 0, 0, 0});
    const int32_t body = emit(e.parts[0], again, depth + 1);
    program_->code_[static_cast<size_t>(loop)].a = body;
    return loop;
  }

  int32_t optional(ExprId part, uint32_t least, int32_t next, int depth) {
    const int32_t body = emit(part, next, depth + 1);
    return least == 1 ? body : split({body, next});
  }

  int32_t rule(RuleId rule, int32_t next) {
    int32_t& entry = rules_[static_cast<size_t>(rule)];
    if (entry < 0) {
      entry = add({Op::split, 0, 0, 0, 0});
      open_.push_back(rule);
    }
    const bool last = program_->code_[static_cast<size_t>(next)].op == Op::ret;
    return add({Op::call, entry, last ? -1 : next, 0, 0});
  }

  // The Aho-Corasick automaton over the triggers: a state is the longest suffix of the text that is
  // a prefix of a trigger.
  struct TextState {
    std::array<int32_t, 256> to{};
    int32_t fail = 0, trigger = -1;
    std::vector<uint8_t> bytes;  // that continue a trigger
  };
  static std::vector<TextState> trigger_states(const std::vector<Trigger>& triggers) {
    std::vector<TextState> states(1);
    states[0].to.fill(-1);
    for (size_t t = 0; t < triggers.size(); ++t) {
      int32_t at = 0;
      for (const char c : triggers[t].text) {
        const auto b = static_cast<uint8_t>(c);
        if (states[static_cast<size_t>(at)].to[b] < 0) {
          states[static_cast<size_t>(at)].to[b] = static_cast<int32_t>(states.size());
          states[static_cast<size_t>(at)].bytes.push_back(b);
          states.emplace_back().to.fill(-1);
        }
        at = states[static_cast<size_t>(at)].to[b];
      }
      if (states[static_cast<size_t>(at)].trigger < 0)
        states[static_cast<size_t>(at)].trigger = static_cast<int32_t>(t);
    }
    std::vector<int32_t> queue = {0};
    for (size_t q = 0; q < queue.size(); ++q) {
      const auto at = static_cast<size_t>(queue[q]);
      const auto fail = static_cast<size_t>(states[at].fail);
      if (at != fail && states[at].trigger < 0) states[at].trigger = states[fail].trigger;
      for (size_t b = 0; b < 256; ++b) {
        const int32_t back = at == 0 ? 0 : states[fail].to[b];
        int32_t& to = states[at].to[b];
        if (to < 0) {
          to = back;
        } else {
          states[static_cast<size_t>(to)].fail = at == 0 ? 0 : back;
          queue.push_back(to);
        }
      }
    }
    return states;
  }

  int32_t free_text(const Expr& e, int32_t next, int depth) {
    size_t bytes = 0;
    for (const Trigger& t : e.triggers) bytes += t.text.size();
    if (bytes > 65536) return too_large();
    const std::vector<TextState> states = trigger_states(e.triggers);
    std::vector<int32_t> entry(states.size(), dead_);
    for (size_t s = 0; s < states.size(); ++s) {
      if (states[s].trigger < 0) entry[s] = add({Op::split, 0, 0, 0, 0});
    }
    // The expression of a trigger at its end, not in the middle of another trigger.
    std::vector<int32_t> then(e.triggers.size(), dead_);
    for (size_t t = 0; t < then.size(); ++t)
      then[t] = emit(e.triggers[t].then, e.again ? entry[0] : next, depth + 1);
    for (size_t s = 0; s < states.size(); ++s) {
      if (states[s].trigger >= 0) continue;
      std::map<int32_t, ByteSet> by_target;
      for (size_t b = 0; b < 256; ++b) by_target[states[s].to[b]].set(b);
      std::vector<int32_t> to;
      if (!e.must) to.push_back(next);
      for (const auto& [target, set] : by_target) {
        const int32_t trigger = states[static_cast<size_t>(target)].trigger;
        to.push_back(byte(set, trigger >= 0 ? then[static_cast<size_t>(trigger)]
                                            : entry[static_cast<size_t>(target)]));
      }
      const auto [begin, end] = store(to);
      program_->code_[static_cast<size_t>(entry[s])] = {Op::split, begin, end, 0, 0};
    }
    return entry[0];
  }

  const Builder& b_;
  const RuleFacts& facts_;
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
  std::unordered_map<ByteSet, int32_t> set_ids_;
  std::vector<int32_t> rules_;  // start of each rule
  std::vector<RuleId> open_;
  int32_t dead_ = 0;
  std::string error_;
};

Result<std::shared_ptr<const Program>> Program::compile(const Builder& builder, ExprId root) {
  if (builder.overflowed()) return invalid("the grammar is too large");
  LOOM_ASSIGN(const RuleFacts facts, rule_facts(builder));
  if (!facts.has_text[static_cast<size_t>(root)])
    return invalid("no text fits this: it never ends, or nothing is allowed");
  return Compiler(builder, facts).run(root);
}

}  // namespace loom::core::grammar
