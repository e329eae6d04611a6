#include "io/bytes/base64.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// 0 to 63, or 64 for an invalid character.
uint32_t digit(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<uint32_t>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<uint32_t>(c - 'a') + 26;
  if (c >= '0' && c <= '9') return static_cast<uint32_t>(c - '0') + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : 64;
}

}  // namespace

Result<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return bad_file(cat("Base64 of ", text.size(), " characters, must be a multiple of 4"));
  }
  const size_t pads = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t digits = i + 4 == text.size() ? 4 - pads : 4;
    uint32_t bits = 0;
    for (size_t j = 0; j < 4; ++j) {
      const uint32_t d = j < digits ? digit(text[i + j]) : 0;
      if (d > 63) return bad_file(cat("character ", i + j, " is not Base64"));
      bits = bits << 6 | d;
    }
    if (digits < 4 && (bits & ((1u << (8 * (4 - digits))) - 1)) != 0)
      return bad_file(cat("character ", i + digits - 1, " has bits of no byte"));
    for (size_t j = 0; j + 1 < digits; ++j) out += static_cast<char>(bits >> (16 - 8 * j) & 255);
  }
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = bytes.size() - i < 3 ? bytes.size() - i : 3;
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < n ? static_cast<uint32_t>(static_cast<uint8_t>(bytes[i + j])) : 0);
    for (size_t j = 0; j < 4; ++j) out += j <= n ? kAlphabet[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

}  // namespace loom::core
