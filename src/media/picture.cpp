#include "media/picture.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/left_out.hpp"
#include "base/text.hpp"
#include "media/decoders.hpp"

namespace loom::core {
namespace {

template <size_t n>
bool begins_with(std::span<const std::byte> bytes, const std::array<uint8_t, n>& sign) {
  return bytes.size() >= n && std::memcmp(bytes.data(), sign.data(), n) == 0;
}

}  // namespace

bool is_png(std::span<const std::byte> head) {
  return begins_with<8>(head, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'});
}

bool is_jpeg(std::span<const std::byte> head) {
  return begins_with<3>(head, {0xff, 0xd8, 0xff});
}

bool is_picture(std::span<const std::byte> head) {
  return is_png(head) || is_jpeg(head);
}

bool is_picture_name(std::string_view name) {
  std::string small(name);
  for (char& c : small) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return small.ends_with(".png") || small.ends_with(".jpg") || small.ends_with(".jpeg");
}

Result<MemoryShare> book_pixels(Picture& picture, int64_t each, const std::string& where,
                                const MemoryBudget& memory) {
  const int64_t pixels = picture.width * picture.height;
  LOOM_ASSIGN(
      MemoryShare share,
      memory.take(static_cast<uint64_t>(pixels * each),
                  cat("a picture of ", picture.width, " x ", picture.height, " pixels"), where));
  picture.pixels.resize(static_cast<size_t>(pixels * picture.channels));
  return share;
}

// Orientations 2 to 4 mirror and turn in place; 5 to 8 exchange the sides first.
Picture oriented(Picture picture, int orientation) {
  if (orientation < 2 || orientation > 8) return picture;
  const bool sides = orientation >= 5;
  // Whether the first pixel of a row (a column) of the result is the last one of the file.
  const bool across = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool down = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Picture out;
  out.channels = picture.channels;
  out.width = sides ? picture.height : picture.width;
  out.height = sides ? picture.width : picture.height;
  out.pixels.resize(picture.pixels.size());
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < out.height; ++y) {
    const int64_t v = down ? out.height - 1 - y : y;
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t u = across ? out.width - 1 - x : x;
      const int64_t at = sides ? u * picture.width + v : v * picture.width + u;
      to = std::copy_n(picture.pixels.data() + at * picture.channels, picture.channels, to);
    }
  }
  return out;
}

Result<Picture> decode_picture(std::span<const std::byte> bytes, const std::string& where,
                               const MemoryBudget& memory) {
  if (!is_picture(bytes)) return bad_file("this is neither a PNG nor a JPEG picture", where, 0);
#ifdef LOOM_WITHOUT_PICTURES
  (void)memory;
  return left_out_of_build("reader of PNG and JPEG", LOOM_BUILD_WITH("LOOM_PICTURES=ON"), where);
#else
  return is_png(bytes) ? decode_png(bytes, where, memory) : decode_jpeg(bytes, where, memory);
#endif
}

}  // namespace loom::core
