// What decode_picture() and decode_sound() are made of, one file per library. Private to the room.
#pragma once

#include "media/picture.hpp"
#include "media/wave.hpp"

namespace loom::core {

bool is_png(std::span<const std::byte> head);
bool is_jpeg(std::span<const std::byte> head);
Result<Picture> decode_png(std::span<const std::byte> bytes, const std::string& where,
                           const MemoryBudget& memory);
Result<Picture> decode_jpeg(std::span<const std::byte> bytes, const std::string& where,
                            const MemoryBudget& memory);

// By libsndfile, whatever it reads.
Result<Wave> decode_by_library(std::span<const std::byte> bytes, const std::string& where,
                               const MemoryBudget& memory);

// Books `each` bytes for every pixel, and makes room for the pixels, of 16 bits where `deep`.
Result<MemoryShare> book_pixels(Picture& picture, int64_t each, const std::string& where,
                                const MemoryBudget& memory, bool deep = false);

// The orientation that an EXIF segment (the data of APP1, "Exif" first) gives a picture, from 1 to
// 8; 1 where it says nothing or cannot be read (CIPA DC-008, tag 0x0112).
int exif_orientation(std::span<const std::byte> segment);
// The picture as that orientation means it to be seen.
Picture oriented(Picture picture, int orientation);

}  // namespace loom::core
