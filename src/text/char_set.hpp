// CharSet: a set of code points, as the classes of a regular expression name them. Everything that
// it knows of Unicode comes from unicode_tables.hpp.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/unicode_tables.hpp"

namespace loom::core::text {

class CharSet {
 public:
  CharSet() = default;
  explicit CharSet(char32_t c) : CharSet(std::vector<CodeRange>{{c, c}}) {}
  // Ranges in any order; they may overlap.
  explicit CharSet(std::vector<CodeRange> ranges);

  // What \p{name} means, in any spelling of the standard ("Lu", "Letter", "Han", "white space");
  // none: a name that is not known.
  static std::optional<CharSet> property(std::string_view name);
  // \w of Oniguruma and of Rust, but for the few characters in which each differs.
  static CharSet word();

  CharSet complement() const;
  // With everything that differs from a member in case alone (simple case folding).
  CharSet with_other_cases() const;
  bool contains(char32_t c) const;
  // Ascending, with a gap between any two.
  std::span<const CodeRange> ranges() const { return ranges_; }
  bool operator==(const CharSet& other) const;

 private:
  std::vector<CodeRange> ranges_;
};

}  // namespace loom::core::text
