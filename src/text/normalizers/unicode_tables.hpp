// The Unicode data of unicode_tables.cpp, which tools/text/make_unicode_tables.py generates with
// the version of each table. No data comes from the system, so the ids of a text are the same
// wherever Loom is built. Only unicode.hpp, char_set.hpp and normal_form.cpp use the tables.
#pragma once

#include <cstdint>
#include <span>

namespace loom::core::text {

struct CodeRange {
  char32_t first = 0, last = 0;
};

// Every `step`-th code point from first to last maps to itself plus delta.
struct CaseRow {
  char32_t first = 0, last = 0;
  uint32_t step = 1;
  int32_t delta = 0;
};

// Code points from first to last, each of which decomposes into `length` parts. The parts are
// contiguous from `parts` on; if `rises` is 1, only those of the first are stored.
struct DecompositionRun {
  char32_t first = 0, last = 0;
  uint32_t length = 1, parts = 0;
  uint8_t compatible = 0;  // 1 means only in the forms NFKC and NFKD
  uint8_t rises = 0;
};

struct ScriptName {
  const char* name;  // in lower case, without "_"
  uint8_t script = 0;
};

// The start of each run (the upper 24 bits) and its value (the lower 8), ascending.
extern const std::span<const uint32_t> kCategories;  // as in Category
extern const std::span<const uint32_t> kScripts;
extern const std::span<const uint32_t> kCombiningClasses;
extern const std::span<const uint32_t> kGraphemeBreaks;  // as in charsmap.cpp

extern const std::span<const ScriptName> kScriptNames;
// The properties without the general categories that they contain completely.
extern const std::span<const CodeRange> kOtherAlphabetic, kOtherLowercase, kOtherUppercase;
extern const std::span<const CodeRange> kIdeographic, kEmoji, kWhiteSpace;
extern const std::span<const CodeRange> kNumbers, kPunctuation, kNonspacingMarks, kOthers;
extern const std::span<const CaseRow> kFold, kLower, kUpper;
extern const std::span<const DecompositionRun> kDecompositionRuns;
extern const std::span<const char32_t> kDecompositionParts;
extern const std::span<const CodeRange> kNotComposed;  // canonical pairs that do not compose

}  // namespace loom::core::text
