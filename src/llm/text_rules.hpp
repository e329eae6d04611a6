// TextRules: what the text may be, beside how tokens are drawn: the grammar of a request, and
// strings that must not appear. Gives the tokens that may come next, and follows those that came.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grammar/matcher.hpp"
#include "llm/model.hpp"
#include "loom/generation.hpp"

namespace loom {

// What the options of a text hold it to, compiled. Immutable.
struct CompiledRules {
  std::shared_ptr<const core::grammar::Vocabulary> vocabulary;
  std::shared_ptr<const core::grammar::Program> grammar, bans;  // null: none
  std::vector<uint64_t> no_text;  // a bit per token without bytes, which spells nothing banned
};

}  // namespace loom

namespace loom::core {

// Null: the options hold a text to nothing. Errors: invalid_argument, unsupported (what the grammar
// or schema says, by place; no tokenizer).
Result<std::shared_ptr<const CompiledRules>> compile_rules(const LanguageModel& model,
                                                           const GenerateOptions& options);

class TextRules {
 public:
  // Takes GenerateOptions::rules, or compiles them. Errors: those of compile_rules();
  // invalid_argument (rules of another model or of other marks).
  static Result<TextRules> create(const LanguageModel& model, const GenerateOptions& options);

  bool none() const { return !grammar_.has_value() && !bans_.has_value(); }
  // A bit per token, empty: all. `ends`: tokens that end the text, where it may end.
  Result<std::span<const uint64_t>> allowed(std::span<const TokenId> ends);
  // A token that allowed() allowed, and that does not end the text.
  void accept(TokenId id);
  // Nothing may follow.
  bool must_end() const { return grammar_.has_value() && grammar_->must_end(); }

 private:
  std::shared_ptr<const CompiledRules> rules_;  // null: none
  std::optional<grammar::Matcher> grammar_, bans_;
  std::vector<uint64_t> bits_;
};

}  // namespace loom::core
