// Regular expressions of tokenizer.json: Oniguruma's dialect as HF `tokenizers` reads it. PCRE2
// runs them over symbols, so that it needs no Unicode data. A pattern outside the supported part of
// that dialect is an Error, never an approximation. Matching spends steps of a Budget; if a pattern
// and a text need more, the result is an Error.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "text/budget.hpp"
#include "text/models/symbol_map.hpp"

namespace loom::core::text {

// A pattern for PCRE2 with the options that Regex sets, and its symbols.
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

  // Appends spans that cover `text` (valid UTF-8, not empty) in order: matches and the text between
  // them.
  Status find_all(std::string_view text, Budget& budget, std::vector<Span>& out) const;

 private:
  struct Impl;
  explicit Regex(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

}  // namespace loom::core::text
