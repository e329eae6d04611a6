#include "remote/frame.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {

DonateHead donate_head(uint32_t length) {
  DonateHead head{};
  for (size_t i = 0; i < kDonateHead; ++i)
    head[i] = static_cast<unsigned char>(length >> (8 * i) & 0xff);
  return head;
}

Result<uint32_t> donate_length(const DonateHead& head, uint32_t most) {
  uint32_t length = 0;
  for (size_t i = 0; i < kDonateHead; ++i) length |= static_cast<uint32_t>(head[i]) << (8 * i);
  if (length == 0) return bad_file("a frame of no bytes");
  if (length > most)
    return bad_file(cat("a frame of ", length, " bytes; at most ", most, " are taken"));
  return length;
}

std::string donate_frame(std::string_view json) {
  const DonateHead head = donate_head(static_cast<uint32_t>(json.size()));
  std::string out(head.begin(), head.end());
  out += json;
  return out;
}

size_t donate_room(size_t have, size_t length) {
  constexpr size_t kFirst = 64 << 10;
  return std::min(length, std::max(kFirst, 2 * have));
}

}  // namespace loom::core
