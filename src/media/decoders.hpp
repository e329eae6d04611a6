// The parts of decode_picture() and decode_sound(), one file per library. Private to the room.
#pragma once

#include "media/picture.hpp"
#include "media/wave.hpp"

namespace loom::core {

bool is_png(std::span<const std::byte> head);
bool is_jpeg(std::span<const std::byte> head);
bool is_netpbm(std::span<const std::byte> head);
Result<Image> decode_netpbm(std::span<const std::byte> bytes, const std::string& where,
                            const MemoryBudget& memory);
Result<Image> decode_png(std::span<const std::byte> bytes, const std::string& where,
                         const MemoryBudget& memory);
Result<Image> decode_jpeg(std::span<const std::byte> bytes, const std::string& where,
                          const MemoryBudget& memory);

// Decodes any format that libsndfile reads.
Result<Wave> decode_by_library(std::span<const std::byte> bytes, const std::string& where,
                               const MemoryBudget& memory);

// Reserves `each` bytes per pixel, and allocates the pixels, with 16 bits if `deep`.
Result<MemoryShare> book_pixels(Image& image, int64_t each, const std::string& where,
                                const MemoryBudget& memory, bool deep = false);

// The image orientation in an EXIF segment (the data of APP1, "Exif" first), from 1 to 8; 1 if it
// is absent or unreadable (CIPA DC-008, tag 0x0112).
int exif_orientation(std::span<const std::byte> segment);
// The image after applying that orientation.
Image oriented(Image image, int orientation);

}  // namespace loom::core
