// Regular expressions of tokenizer.json: Oniguruma's dialect as HF `tokenizers` reads it, run by
// PCRE2 over symbols, so that PCRE2 needs to know nothing of Unicode. A pattern outside the
// supported part of that dialect is an Error, never a near miss. Matching spends the steps of a
// Budget; a pattern and a text that together need more answer with an Error.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/budget.hpp"
#include "text/symbol_map.hpp"

namespace loom::core::text {

// A pattern rewritten for PCRE2 with the options that Regex sets, and the symbols that it speaks
// of.
struct RegexProgram {
  std::string native;
  SymbolMap symbols;
};
Result<RegexProgram> translate_regex(std::string_view pattern, const std::string& where);

struct Span {
  size_t begin = 0;
  size_t end = 0;
  bool matched = false;
};

class Regex {
 public:
  static Result<Regex> compile(std::string_view pattern, const std::string& where);

  // Appends spans that cover `text` (valid UTF-8, not empty) in order: the matches and what lies
  // between.
  Status find_all(std::string_view text, Budget& budget, std::vector<Span>& out) const;

 private:
  struct Impl;
  explicit Regex(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace loom::core::text
