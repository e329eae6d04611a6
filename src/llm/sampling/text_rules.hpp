// TextRules: constraints on a text besides sampling: the grammar of a request, and banned strings.
// It returns the tokens that may come next, and follows the tokens that came.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "grammar/matcher.hpp"
#include "llm/model.hpp"
#include "loom/generation.hpp"

namespace loom {

// Compiled constraints of a text's options. Immutable.
struct CompiledRules {
  std::shared_ptr<const core::grammar::Vocabulary> vocabulary;
  std::shared_ptr<const core::grammar::Program> grammar, bans;  // may be null
  std::vector<uint64_t> no_text;  // a bit per token without bytes, which can spell no banned string
};

}  // namespace loom

namespace loom::core {

// Returns null if the options have no constraint. Errors: invalid_argument, unsupported (faults of
// the grammar or schema, with locations; no tokenizer).
Result<std::shared_ptr<const CompiledRules>> compile_rules(const LanguageModel& model,
                                                           const GenerateOptions& options);

class TextRules {
 public:
  // Takes GenerateOptions::rules, or compiles them. Errors: those of compile_rules();
  // invalid_argument (rules of another model or of other marks).
  static Result<TextRules> create(const LanguageModel& model, const GenerateOptions& options);

  bool none() const { return !grammar_.has_value() && !bans_.has_value(); }
  // A bit per token; empty means all. `ends`: tokens that end the text, allowed if it may end here.
  Result<std::span<const uint64_t>> allowed(std::span<const TokenId> ends);
  // Takes a token that allowed() permits and that does not end the text.
  void accept(TokenId id);
  // Whether nothing may follow.
  bool must_end() const { return grammar_.has_value() && grammar_->must_end(); }

 private:
  std::shared_ptr<const CompiledRules> rules_;  // may be null
  std::optional<grammar::Matcher> grammar_, bans_;
  std::vector<uint64_t> bits_;
};

}  // namespace loom::core
