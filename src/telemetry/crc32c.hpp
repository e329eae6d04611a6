// CRC-32C (Castagnoli), as TensorFlow's record files use it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace loom::core {

// Reflected polynomial 0x1EDC6F41, start and end inverted (RFC 3720, appendix B.4).
inline uint32_t crc32c(std::span<const std::byte> bytes) {
  static constexpr std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ (value & 1 ? 0x82F63B78U : 0U);
      table[i] = value;
    }
    return table;
  }();
  uint32_t crc = ~0U;
  for (const std::byte b : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint32_t>(b)) & 0xff];
  return ~crc;
}

// Rotated and offset, so that checksums of bytes that contain checksums stay strong.
inline uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

}  // namespace loom::core
