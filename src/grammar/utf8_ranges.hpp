// Ranges of code points as sequences of ranges of their UTF-8 bytes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "text/normalizers/char_set.hpp"

namespace loom::core::grammar {

struct ByteRange {
  uint8_t first = 0, last = 0;
};

// One byte from each of parts[0 .. length).
struct Utf8Range {
  std::array<ByteRange, 4> parts{};
  size_t length = 0;
};

// Sequences that together cover `set`, each member once. Surrogates are not characters.
std::vector<Utf8Range> utf8_ranges(const text::CharSet& set);

}  // namespace loom::core::grammar
