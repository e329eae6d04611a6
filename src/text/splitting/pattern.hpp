// The pattern of Split and Replace: a literal string or a regular expression. Its spans cover the
// whole text in order, as HF `tokenizers` defines patterns.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/splitting/regex.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class Pattern {
 public:
  Pattern() = default;
  static Pattern literal(std::string text);
  static Result<Pattern> regex(std::string_view text, const std::string& where);
  static Result<Pattern> make(const PatternSpec& spec);

  // Spans of matches and of the text between them; {0, 0, false} for an empty text.
  Status find_all(std::string_view text, Budget& budget, std::vector<Span>& out) const;

  // `text` with every match replaced.
  Result<std::string> replace_all(std::string_view text, std::string_view content,
                                  Budget& budget) const;

 private:
  void find_literal(std::string_view text, std::vector<Span>& out) const;
  std::string literal_;
  std::optional<Regex> regex_;
};

}  // namespace loom::core::text
