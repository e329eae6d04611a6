// TextRules: what the text may be, beside how tokens are drawn: the grammar of a request, and
// strings that must not appear. Gives the tokens that may come next, and follows those that came.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "grammar/matcher.hpp"
#include "llm/model.hpp"
#include "loom/generation.hpp"

namespace loom::core {

class TextRules {
 public:
  // Errors: invalid_argument, unsupported (what the grammar or schema says, by place; no
  // tokenizer).
  static Result<TextRules> create(const LanguageModel& model, const GenerateOptions& options);

  bool none() const { return !grammar_.has_value() && !bans_.has_value(); }
  // A bit per token, empty: all. `ends`: tokens that end the text, where it may end.
  Result<std::span<const uint64_t>> allowed(std::span<const TokenId> ends);
  // A token that allowed() allowed, and that does not end the text.
  void accept(TokenId id);
  // Nothing may follow.
  bool must_end() const { return grammar_.has_value() && grammar_->must_end(); }

 private:
  std::shared_ptr<const grammar::Vocabulary> vocabulary_;
  std::optional<grammar::Matcher> grammar_, bans_;
  std::vector<uint64_t> no_text_;  // tokens without bytes, which spell nothing banned
  std::vector<uint64_t> bits_;
};

}  // namespace loom::core
