// Binary PNM images, P5 (grey) and P6 (colors), of 8 or 16 bits. The Python package passes images
// in this form to a build without libpng and libjpeg. The maximum has to be 255 or 65535.
#include <algorithm>

#include "base/text.hpp"
#include "media/decoders.hpp"

namespace loom::core {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

// Reads the next number of the header, after comments, which begin with '#'. Returns -1 if there is
// none or it is too large.
int64_t next_number(std::string_view text, size_t& at) {
  while (at < text.size() && (is_space(text[at]) || text[at] == '#')) {
    const bool comment = text[at] == '#';
    ++at;
    while (comment && at < text.size() && text[at] != '\n') ++at;
  }
  int64_t value = -1;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    value = std::max<int64_t>(value, 0) * 10 + (text[at] - '0');
    if (value > kMaxPictureSide) return -1;
  }
  return value;
}

}  // namespace

bool is_netpbm(std::span<const std::byte> head) {
  const auto at = [&](size_t i) { return static_cast<char>(head[i]); };
  return head.size() >= 3 && at(0) == 'P' && (at(1) == '5' || at(1) == '6') && is_space(at(2));
}

Result<Image> decode_netpbm(std::span<const std::byte> bytes, const std::string& where,
                            const MemoryBudget& memory) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t at = 2;
  Image image;
  image.channels = text[1] == '5' ? 1 : 3;
  image.width = next_number(text, at);
  image.height = next_number(text, at);
  const int64_t top = next_number(text, at);
  if (image.width < 1 || image.height < 1 || at >= text.size() || !is_space(text[at]))
    return bad_file("this PNM image has no size", where, 0);
  if (top != 255 && top != 65535)
    return bad_file(cat("this PNM image has values to ", top, ", must be 255 or 65535"), where, 0);
  const bool deep = top == 65535;
  const std::span<const std::byte> values = bytes.subspan(at + 1);  // one space ends the header
  const int64_t each = image.channels * (deep ? 2 : 1);
  if (static_cast<int64_t>(values.size()) < image.width * image.height * each)
    return bad_file("this PNM image ends before its last pixel", where,
                    static_cast<int64_t>(bytes.size()));
  LOOM_ASSIGN(const MemoryShare share, book_pixels(image, each, where, memory, deep));
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<uint8_t>(values[i]);
  for (size_t i = 0; i < image.deep.size(); ++i)
    image.deep[i] = static_cast<uint16_t>(static_cast<int>(values[2 * i]) << 8 |
                                          static_cast<int>(values[2 * i + 1]));
  return image;
}

}  // namespace loom::core
