// Converts an image to the values of a network's input: its size, its number of channels, and
// values from 0 to 1.
//
// Resizing is the separable triangle filter of Pillow's Image.resize(BILINEAR, box=...). The filter
// is widened by the factor by which a side shrinks, so that every pixel contributes. It runs in
// double precision, first along rows and then along columns. Grey is Pillow's, (19595 R + 38470 G +
// 7471 B + 2^15) / 2^16.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "loom/picture_fit.hpp"
#include "media/picture.hpp"

namespace loom::core {

// `crop` is ImageOps.fit: it cuts off the same at both sides.
std::string_view picture_fit_name(PictureFit fit);
Result<PictureFit> parse_picture_fit(std::string_view name);

// [channels, height, width]; channels: 1 or 3.
struct PictureShape {
  int64_t channels = 1, height = 1, width = 1;
  int64_t count() const { return channels * height * width; }
};

// out: PictureShape::count() values.
void fit_picture(const Image& image, PictureFit fit, const PictureShape& shape,
                 std::span<float> out);

}  // namespace loom::core
