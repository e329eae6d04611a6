#include "media/fit.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::array<std::string_view, 3> kFits = {"crop", "stretch", "pad"};

// The mapping of one axis: [from, to) of the image, which may be fractional, becomes `count` values
// at `first` of the input.
struct Stretch {
  double from = 0, to = 1;
  int64_t first = 0, count = 1;
};

// Pixels [first, first + weights.size()) contribute to one value.
struct Tap {
  int64_t first = 0;
  std::vector<double> weights;
};

// A triangle as wide as one value of the result, at least one pixel, around its middle.
std::vector<Tap> taps_of(const Stretch& s, int64_t pixels) {
  std::vector<Tap> taps(static_cast<size_t>(s.count));
  const double scale = (s.to - s.from) / static_cast<double>(s.count);
  const double reach = std::max(scale, 1.0);
  for (int64_t i = 0; i < s.count; ++i) {
    Tap& tap = taps[static_cast<size_t>(i)];
    const double middle = s.from + (static_cast<double>(i) + 0.5) * scale;
    tap.first = std::max<int64_t>(static_cast<int64_t>(middle - reach + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(middle + reach + 0.5), pixels);
    double sum = 0;
    for (int64_t p = tap.first; p < end; ++p) {
      const double away = std::abs((static_cast<double>(p) - middle + 0.5) * (1.0 / reach));
      tap.weights.push_back(away < 1 ? 1 - away : 0.0);
      sum += tap.weights.back();
    }
    for (double& w : tap.weights) w *= 1.0 / sum;
  }
  return taps;
}

// Both axes of the mapping from image to input.
struct Placement {
  Stretch x, y;
};

Placement placement_of(const Image& p, PictureFit fit, const PictureShape& shape) {
  const auto w = static_cast<double>(p.width), h = static_cast<double>(p.height);
  const auto to_w = static_cast<double>(shape.width), to_h = static_cast<double>(shape.height);
  Placement out{{0, w, 0, shape.width}, {0, h, 0, shape.height}};
  if (fit == PictureFit::crop) {
    const double zoom = std::min(w / to_w, h / to_h);
    out.x.from = std::max((w - zoom * to_w) / 2, 0.0);
    out.x.to = std::min(out.x.from + zoom * to_w, w);
    out.y.from = std::max((h - zoom * to_h) / 2, 0.0);
    out.y.to = std::min(out.y.from + zoom * to_h, h);
  } else if (fit == PictureFit::pad) {
    const double zoom = std::max(w / to_w, h / to_h);
    const auto part = [zoom](double side, int64_t whole, Stretch& axis) {
      axis.count = std::clamp<int64_t>(static_cast<int64_t>(side / zoom + 0.5), 1, whole);
      axis.first = (whole - axis.count) / 2;
    };
    part(w, shape.width, out.x);
    part(h, shape.height, out.y);
  }
  return out;
}

// A row of the image as numbers with the requested channels, channel by channel.
template <class T>
void row_as(const Image& p, const T* pixels, int64_t y, int64_t channels, double* to) {
  const T* from = pixels + y * p.width * p.channels;
  for (int64_t x = 0; x < p.width; ++x, from += p.channels) {
    if (channels == 1 && p.channels == 3) {
      to[x] = (19595U * from[0] + 38470U * from[1] + 7471U * from[2] + 0x8000U) >> 16;
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) to[c * p.width + x] = from[p.channels == 3 ? c : 0];
  }
}

// `values` points at the first pixel of the tap.
double gathered(const Tap& tap, const auto* values, int64_t stride) {
  double sum = 0;
  for (const double weight : tap.weights) {
    sum += static_cast<double>(*values) * weight;
    values += stride;
  }
  return sum;
}

}  // namespace

std::string_view picture_fit_name(PictureFit fit) {
  return kFits[static_cast<size_t>(fit)];
}

Result<PictureFit> parse_picture_fit(std::string_view name) {
  const auto at = std::find(kFits.begin(), kFits.end(), name);
  if (at != kFits.end()) return static_cast<PictureFit>(at - kFits.begin());
  return invalid(cat("images are fitted by crop, stretch or pad, not by ", printable(name, 40)));
}

void fit_picture(const Image& image, PictureFit fit, const PictureShape& shape,
                 std::span<float> out) {
  const Placement position = placement_of(image, fit, shape);
  const std::vector<Tap> across = taps_of(position.x, image.width);
  const std::vector<Tap> down = taps_of(position.y, image.height);
  const int64_t top = down.front().first;
  const int64_t end = down.back().first + static_cast<int64_t>(down.back().weights.size());
  // The needed rows, at the width of the input: [channels][row - top][place.x.count].
  const int64_t rows = end - top, width = position.x.count;
  std::vector<float> narrow(static_cast<size_t>(shape.channels * rows * width));
  std::vector<double> row(static_cast<size_t>(shape.channels * image.width));
  for (int64_t y = top; y < end; ++y) {
    if (image.deep.empty())
      row_as(image, image.pixels.data(), y, shape.channels, row.data());
    else
      row_as(image, image.deep.data(), y, shape.channels, row.data());
    for (int64_t c = 0; c < shape.channels; ++c) {
      float* to = narrow.data() + (c * rows + y - top) * width;
      for (const Tap& tap : across)
        *to++ = static_cast<float>(gathered(tap, row.data() + c * image.width + tap.first, 1));
    }
  }
  std::fill(out.begin(), out.end(), 0.0f);
  const double most = image.deep.empty() ? 255.0 : 65535.0;
  for (int64_t c = 0; c < shape.channels; ++c) {
    for (int64_t y = 0; y < position.y.count; ++y) {
      const Tap& tap = down[static_cast<size_t>(y)];
      const float* from = narrow.data() + (c * rows + tap.first - top) * width;
      float* to =
          out.data() + (c * shape.height + position.y.first + y) * shape.width + position.x.first;
      for (int64_t x = 0; x < width; ++x) {
        to[x] = static_cast<float>(gathered(tap, from + x, width) / most);
      }
    }
  }
}

}  // namespace loom::core
