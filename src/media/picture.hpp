// Images from PNG, JPEG and PNM files, as pixels of 8 or 16 bits. Only this room uses libpng and
// libjpeg.
// Sizes are checked against the memory budget before unpacking. Library errors about damage become
// one-line Errors. It does not write images or manage colours: profiles and gamma are ignored, as
// in Pillow and torchvision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.hpp"

namespace loom::core {

struct Image {
  int64_t width = 0, height = 0;
  int64_t channels = 3;         // 1 means grey, 3 red, green and blue
  std::vector<uint8_t> pixels;  // [height][width][channels]
  std::vector<uint16_t> deep;   // the same for 16-bit files, in place of `pixels`
};

constexpr int64_t kMaxPictureSide = 65535;

// By the first bytes: PNG, JPEG or PNM.
bool is_picture(std::span<const std::byte> head);
// By file extension: .png, .jpg, .jpeg, .pnm, .ppm, .pgm, ignoring case.
bool is_picture_name(std::string_view name);
// The same for unsupported images: WebP, BMP, GIF, TIFF, AVIF, HEIC.
bool is_unread_picture_name(std::string_view name);

// Alpha is dropped, palettes are looked up, 16 bits are kept, CMYK becomes RGB. A JPEG is rotated
// by its EXIF orientation. Errors: bad_file (truncated, damaged, neither PNG nor JPEG, a side above
// kMaxPictureSide), out_of_memory, unsupported (a build without the libraries).
Result<Image> decode_picture(std::span<const std::byte> bytes, const std::string& where,
                             const MemoryBudget& memory);

}  // namespace loom::core
