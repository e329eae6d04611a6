// SymbolMap: maps code points to symbols of one byte. Every set of a pattern becomes a set of
// symbols: code points that no set distinguishes share a symbol. A pattern and a text in symbols
// need no Unicode data, and a class is a table of 256 bits.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizers/char_set.hpp"

namespace loom::core::text {

class SymbolMap {
 public:
  // The symbol of the newline is always the newline.
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
