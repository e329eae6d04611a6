// How images are fitted to the input of a network.
#pragma once

#include <cstdint>
#include <string_view>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// How an image of another aspect ratio is fitted to an input: cropped at both sides, stretched, or
// padded with black bars.
enum class PictureFit : uint8_t { crop, stretch, pad };
// "crop", "stretch", "pad".
LOOM_API Result<PictureFit> parse_picture_fit(std::string_view name);

}  // namespace loom
