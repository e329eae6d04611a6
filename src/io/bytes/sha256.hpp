// SHA-256 of FIPS 180-4 over bytes, in the order they are added, for hashes that others verify.
// hash.hpp has a faster hash for damage in our own files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace loom::core {

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  // 64 hex digits; nothing can be added afterwards.
  std::string finish();

 private:
  void block(const std::byte* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> held_{};  // of an incomplete block
  uint64_t length_ = 0;               // bytes so far
};

// The hash of all bytes at once.
std::string sha256_of(std::span<const std::byte> bytes);
// Two digits for each byte, lower case.
std::string hex_text(std::span<const std::byte> bytes);

}  // namespace loom::core
