// Base64 with the standard alphabet and padding (RFC 4648, section 4), read strictly: no line
// breaks, no missing padding, no bits that no byte holds.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

// Bytes that a text of `size` characters holds at most.
constexpr uint64_t base64_max_bytes(uint64_t size) {
  return size / 4 * 3;
}
// The Error says which character is wrong, counted from 0.
Result<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace loom::core
