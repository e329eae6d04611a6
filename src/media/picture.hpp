// Pictures from PNG and JPEG files, as pixels of 8 or 16 bits: the only door to libpng and libjpeg.
// Sizes are checked against the memory budget before a pixel is unpacked; what a library says of
// damage becomes an Error of one line. Not a writer, and no colour management: profiles and gamma
// are left out, as Pillow and torchvision leave them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory_budget.hpp"

namespace loom::core {

struct Picture {
  int64_t width = 0, height = 0;
  int64_t channels = 3;         // 1: grey, 3: red, green, blue
  std::vector<uint8_t> pixels;  // [height][width][channels]
  std::vector<uint16_t> deep;   // the same, in place of `pixels`, of files with 16 bits
};

constexpr int64_t kMostPictureSide = 65535;

// By the first bytes: PNG or JPEG.
bool is_picture(std::span<const std::byte> head);
// By the ending of a name: .png, .jpg, .jpeg, in small or capital letters.
bool is_picture_name(std::string_view name);
// The same of pictures that are not read: WebP, BMP, GIF, TIFF, AVIF, HEIC.
bool is_unread_picture_name(std::string_view name);

// Alpha is dropped, palettes are looked up, 16 bits stay, CMYK becomes RGB; a
// JPEG is turned as its EXIF orientation says. Errors: bad_file (cut, damaged, neither PNG nor
// JPEG, a side above kMostPictureSide), out_of_memory, unsupported (a build without the libraries).
Result<Picture> decode_picture(std::span<const std::byte> bytes, const std::string& where,
                               const MemoryBudget& memory);

}  // namespace loom::core
