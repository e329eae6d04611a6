// Base64 with the standard alphabet and padding (RFC 4648, section 4), parsed strictly: no line
// breaks, no missing padding, no nonzero unused bits.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

// The maximum number of bytes in a text of `size` characters.
constexpr uint64_t base64_max_bytes(uint64_t size) {
  return size / 4 * 3;
}
// Errors: the first wrong character, counted from 0.
Result<std::string> decode_base64(std::string_view text);
std::string encode_base64(std::string_view bytes);

}  // namespace loom::core
