#include "mesh_picture.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "plot.hpp"
#include "svg.hpp"

namespace loom::cli {
namespace {

constexpr size_t kPictureColumns = 64, kPictureCells = 24, kPictureTicks = 512;

// The mean of ticks [first, last) of a cell; NaN while it holds nothing.
double mean_activity(const Activity& a, size_t cell, size_t first, size_t last) {
  double sum = 0;
  for (size_t t = first; t < last; ++t) sum += a.values[t][cell];
  return sum / static_cast<double>(last - first);
}

double largest_activity(const Activity& a, size_t cell) {
  double most = 0;
  for (const std::vector<double>& tick : a.values) {
    if (tick[cell] > most) most = tick[cell];
  }
  return most > 0 ? most : 1;
}

// U+2581 ... U+2588, in UTF-8.
std::string shade(double share) {
  if (!std::isfinite(share)) return ".";
  const int level = std::clamp(static_cast<int>(share * 8), 0, 7);
  return std::string("\xE2\x96") + static_cast<char>(0x81 + level);
}

}  // namespace

std::string activity_text(const Activity& a) {
  if (a.values.empty()) return {};
  const size_t ticks = a.values.size(), columns = std::min(ticks, kPictureColumns);
  size_t width = 0;
  for (const std::string& name : a.cells) width = std::max(width, name.size());
  std::string text;
  for (size_t k = 0; k < std::min(a.cells.size(), kPictureCells); ++k) {
    text += fmt::format("{:<{}} ", a.cells[k], width);
    const double most = largest_activity(a, k);
    for (size_t c = 0; c < columns; ++c) {
      text += shade(mean_activity(a, k, c * ticks / columns, (c + 1) * ticks / columns) / most);
    }
    text += "\n";
  }
  if (a.cells.size() > kPictureCells)
    text += fmt::format("({} more cells)\n", a.cells.size() - kPictureCells);
  return text +
         fmt::format("{:<{}} tick 1{:>{}}\n", "", width, ticks, std::max<size_t>(columns, 10) - 6);
}

std::string activity_svg(const Activity& a, const std::string& title) {
  const size_t ticks = a.values.size(), cells = a.cells.size();
  const size_t columns = std::min(ticks, kPictureTicks);
  constexpr double kLeft = 170, kTop = 40, kHigh = 18, kWide = 720;
  const double wide = std::min(kHigh, kWide / static_cast<double>(std::max<size_t>(columns, 1)));
  const double width = kLeft + wide * static_cast<double>(columns) + 20;
  const double height = kTop + kHigh * static_cast<double>(cells) + 40;
  std::string svg = svg_open(width, height, title);
  for (size_t k = 0; k < cells; ++k) {
    const double y = kTop + kHigh * static_cast<double>(k), most = largest_activity(a, k);
    svg += svg_text(kLeft - 8, y + 13, "end", a.cells[k]);
    for (size_t c = 0; c < columns; ++c) {
      const double share =
          mean_activity(a, k, c * ticks / columns, (c + 1) * ticks / columns) / most;
      if (!std::isfinite(share)) continue;
      // From near white to a dark blue.
      const auto mix = [&](double from, double to) { return from + share * (to - from); };
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.0f}\" "
          "fill=\"rgb({:.0f},{:.0f},{:.0f})\"/>\n",
          kLeft + wide * static_cast<double>(c), y, wide, kHigh - 2, mix(235, 8), mix(242, 48),
          mix(250, 107));
    }
  }
  const size_t step = label_step(ticks, 10);
  for (size_t t = step; t <= ticks; t += step)
    svg += svg_text(kLeft + wide * static_cast<double>(columns) * (static_cast<double>(t) - 0.5) /
                                static_cast<double>(ticks),
                    height - 24, "middle", std::to_string(t));
  return svg + svg_text(kLeft - 8, height - 24, "end", "tick") + "</svg>\n";
}

}  // namespace loom::cli
