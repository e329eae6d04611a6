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

#ifdef __wasm__  // a page decodes images itself
constexpr bool kHasNetpbm = false;
#else
constexpr bool kHasNetpbm = true;
#endif

bool is_picture(std::span<const std::byte> head) {
  if constexpr (kHasNetpbm) {
    if (is_netpbm(head)) return true;
  }
  return is_png(head) || is_jpeg(head);
}

namespace {

bool ends_in(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::string small = to_lower_ascii(name);
  return std::ranges::any_of(endings, [&](std::string_view e) { return small.ends_with(e); });
}

#ifndef LOOM_WITHOUT_PICTURES
// The format of an unsupported image by its first bytes; empty if unknown.
std::string_view unread_picture(std::span<const std::byte> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()),
                              std::min<size_t>(head.size(), 16));
  if (text.size() < 12) return {};
  if (text.starts_with("RIFF") && text.substr(8, 4) == "WEBP") return "WebP";
  if (text.starts_with("BM")) return "BMP";
  if (text.starts_with("GIF8")) return "GIF";
  if (text.starts_with("II*") || text.starts_with("MM\0*")) return "TIFF";
  if (text.substr(4, 4) == "ftyp") return text.substr(8, 4) == "avif" ? "AVIF" : "HEIC";
  return {};
}
#endif

}  // namespace

bool is_picture_name(std::string_view name) {
  return ends_in(name, {".png", ".jpg", ".jpeg", ".pnm", ".ppm", ".pgm"});
}

bool is_unread_picture_name(std::string_view name) {
  return ends_in(name, {".webp", ".bmp", ".gif", ".tif", ".tiff", ".avif", ".heic"});
}

Result<MemoryShare> book_pixels(Image& image, int64_t each, const std::string& where,
                                const MemoryBudget& memory, bool deep) {
  const int64_t pixels = image.width * image.height;
  LOOM_ASSIGN(MemoryShare share,
              memory.take(static_cast<uint64_t>(pixels * each),
                          cat("an image of ", image.width, " x ", image.height, " pixels"), where));
  const auto values = static_cast<size_t>(pixels * image.channels);
  if (deep)
    image.deep.resize(values);
  else
    image.pixels.resize(values);
  return share;
}

// Orientations 2 to 4 mirror and rotate in place; 5 to 8 exchange the sides first.
Image oriented(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const bool sides = orientation >= 5;
  // Whether the first pixel of a row (a column) of the result is the last one of the file.
  const bool across = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool down = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Image out;
  out.channels = image.channels;
  out.width = sides ? image.height : image.width;
  out.height = sides ? image.width : image.height;
  out.pixels.resize(image.pixels.size());
  uint8_t* to = out.pixels.data();
  for (int64_t y = 0; y < out.height; ++y) {
    const int64_t v = down ? out.height - 1 - y : y;
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t u = across ? out.width - 1 - x : x;
      const int64_t at = sides ? u * image.width + v : v * image.width + u;
      to = std::copy_n(image.pixels.data() + at * image.channels, image.channels, to);
    }
  }
  return out;
}

Result<Image> decode_picture(std::span<const std::byte> bytes, const std::string& where,
                             const MemoryBudget& memory) {
  if constexpr (kHasNetpbm) {
    if (is_netpbm(bytes)) return decode_netpbm(bytes, where, memory);
  }
#ifndef LOOM_WITHOUT_PICTURES
  const std::string_view form = unread_picture(bytes);
  if (!form.empty())
    return unsupported(cat("this is a ", form, " image, which Loom does not read; save it as PNG"),
                       where);
#endif
  if (!is_picture(bytes)) return bad_file("this is neither a PNG nor a JPEG image", where, 0);
#ifdef LOOM_WITHOUT_PICTURES
  (void)memory;
  return left_out_of_build("reader of PNG and JPEG", LOOM_BUILD_WITH("LOOM_PICTURES=ON"), where);
#else
  return is_png(bytes) ? decode_png(bytes, where, memory) : decode_jpeg(bytes, where, memory);
#endif
}

}  // namespace loom::core
