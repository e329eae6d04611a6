// A picture as the values of a network's input: brought to its size, with its number of channels,
// from 0 to 1.
//
// Resizing is the separable triangle filter of Pillow's Image.resize(BILINEAR, box=...), widened by
// the factor by which a side shrinks (so that no pixel is left out), in double precision, first
// along rows and then along columns. Grey is Pillow's, (19595 R + 38470 G + 7471 B + 2^15) / 2^16.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "media/picture.hpp"

namespace loom::core {

// How a picture of another shape than the input's meets it: `crop` fills the input and cuts off
// what is over, equally on both sides (ImageOps.fit); `stretch` changes its proportions; `pad`
// shows all of it, between black bars.
enum class PictureFit : uint8_t { crop, stretch, pad };
std::string_view picture_fit_name(PictureFit fit);
Result<PictureFit> parse_picture_fit(std::string_view name);

// [channels, height, width]; channels: 1 or 3.
struct PictureShape {
  int64_t channels = 1, height = 1, width = 1;
  int64_t count() const { return channels * height * width; }
};

// out: PictureShape::count() values.
void fit_picture(const Picture& picture, PictureFit fit, const PictureShape& shape,
                 std::span<float> out);

}  // namespace loom::core
