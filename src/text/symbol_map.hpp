// SymbolMap: from code points to symbols of one byte, so that every set of a pattern is a set of
// symbols: two code points that no set tells apart have the same one. A pattern and a text in
// symbols need nothing of Unicode any more, and a class is a table of 256 bits.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/char_set.hpp"

namespace loom::core::text {

class SymbolMap {
 public:
  // The symbol of the newline is the newline, whatever else there is.
  SymbolMap();

  // Makes `set` a set of symbols. False: more than 256 symbols would be needed.
  [[nodiscard]] bool add(const CharSet& set);
  // The symbols of a set that was added.
  std::bitset<256> symbols(const CharSet& set) const;
  // After the last add(): symbols of valid UTF-8, one byte for a character.
  void finish();
  std::string translate(std::string_view text) const;

 private:
  struct Run {
    char32_t first = 0;
    uint8_t symbol = 0;
  };
  uint8_t find(char32_t c) const;
  std::vector<Run> runs_;  // ascending
  size_t used_ = 0;
  std::array<uint8_t, 0x300> small_{};  // the symbols of Latin letters
};

}  // namespace loom::core::text
