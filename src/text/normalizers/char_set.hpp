// CharSet: a set of code points, as named by the classes of a regular expression. Its Unicode data
// comes from unicode_tables.hpp.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "text/normalizers/unicode_tables.hpp"

namespace loom::core::text {

class CharSet {
 public:
  CharSet() = default;
  explicit CharSet(char32_t c) : CharSet(std::vector<CodeRange>{{c, c}}) {}
  // Ranges in any order; they may overlap.
  explicit CharSet(std::vector<CodeRange> ranges);

  // The set of \p{name}, in any spelling of the standard ("Lu", "Letter", "Han", "white space");
  // unset if the name is unknown.
  static std::optional<CharSet> property(std::string_view name);
  // \w of Oniguruma and of Rust, except the few characters in which they differ.
  static CharSet word();

  CharSet complement() const;
  // Adds all characters that differ from a member in case only (simple case folding).
  CharSet with_other_cases() const;
  bool contains(char32_t c) const;
  // Ascending and separated.
  std::span<const CodeRange> ranges() const { return ranges_; }
  bool operator==(const CharSet& other) const;

 private:
  std::vector<CodeRange> ranges_;
};

}  // namespace loom::core::text
