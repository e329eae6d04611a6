// Packs and unpacks the 32 codes of one row in a block of R16; private to the room. There is one
// plane, or two for codes whose bits do not divide 8 (see r16.hpp). `at` is the block's first byte
// of the lane; the four codes of a quad are the four bytes of a word.
#pragma once

#include <cstring>

#include "base/numbers/bits.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core {

// Bits [from, from + bits) of the codes.
inline void put_plane(const uint8_t (&codes)[kR16Block], int from, int bits, std::byte* at) {
  const uint32_t mask = 0x01010101u * ((1u << bits) - 1u);
  for (int vec = 0; vec < bits; ++vec) {
    uint32_t word = 0;
    for (int high = 0; high < 8 / bits; ++high)
      word |= (load_le<uint32_t>(codes + 4 * (vec + high * bits)) >> from & mask) << (bits * high);
    std::memcpy(at + vec * 64, &word, 4);
  }
}

inline void add_plane(const std::byte* at, int to, int bits, uint8_t (&codes)[kR16Block]) {
  const uint32_t mask = 0x01010101u * ((1u << bits) - 1u);
  for (int vec = 0; vec < bits; ++vec) {
    const auto word = load_le<uint32_t>(at + vec * 64);
    for (int high = 0; high < 8 / bits; ++high) {
      uint8_t* quad = codes + 4 * (vec + high * bits);
      const uint32_t sum = load_le<uint32_t>(quad) | ((word >> (bits * high)) & mask) << to;
      std::memcpy(quad, &sum, 4);
    }
  }
}

inline void put_codes(const R16& g, const uint8_t (&codes)[kR16Block], std::byte* at) {
  put_plane(codes, 0, g.low_bits, at);
  if (g.low_bits < g.bits) put_plane(codes, g.low_bits, g.bits - g.low_bits, at + 64 * g.low_bits);
}

inline void get_codes(const R16& g, const std::byte* at, uint8_t (&codes)[kR16Block]) {
  std::memset(codes, 0, sizeof(codes));
  add_plane(at, 0, g.low_bits, codes);
  if (g.low_bits < g.bits) add_plane(at + 64 * g.low_bits, g.low_bits, g.bits - g.low_bits, codes);
}

}  // namespace loom::core
