#include "plot.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "svg.hpp"

namespace loom::cli {
namespace {

struct Range {
  double low = 0, high = 1;
  double share(double v) const { return (v - low) / (high - low); }
};

Range range_of(const Curves& c) {
  Range r;
  bool any = false;
  for (const auto* list : {&c.train, &c.validation}) {
    for (const double v : *list) {
      if (!std::isfinite(v)) continue;
      r.low = any ? std::min(r.low, v) : v;
      r.high = any ? std::max(r.high, v) : v;
      any = true;
    }
  }
  if (r.high - r.low < 1e-12) r.high = r.low + 1;
  return r;
}

// Where epoch i of n stands, from 0 to 1.
double position(size_t i, size_t n) {
  return n < 2 ? 0.0 : static_cast<double>(i) / static_cast<double>(n - 1);
}

// ---- terminal -----------------------------------------------------------------------------------

constexpr int kCols = 48, kRows = 6;  // characters; each is 2 x 4 dots

class Dots {
 public:
  void curve(const std::vector<double>& values, const Range& range) {
    for (int x = 0; x < 2 * kCols && !values.empty(); ++x) {
      const double at =
          static_cast<double>(x) / (2 * kCols - 1) * static_cast<double>(values.size() - 1);
      const auto i = static_cast<size_t>(at);
      const double next = values[std::min(i + 1, values.size() - 1)];
      const double v = values[i] + (next - values[i]) * (at - static_cast<double>(i));
      if (std::isfinite(v))
        dot(x, static_cast<int>(std::lround((1 - range.share(v)) * (4 * kRows - 1))));
    }
  }
  std::string row(int r) const {
    std::string text;
    for (int c = 0; c < kCols; ++c) {
      const int bits = cells_[r][c];  // U+2800 + bits, in UTF-8
      text += static_cast<char>(0xE2);
      text += static_cast<char>(0xA0 | (bits >> 6));
      text += static_cast<char>(0x80 | (bits & 0x3F));
    }
    return text;
  }

 private:
  void dot(int x, int y) {
    constexpr int kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    y = std::clamp(y, 0, 4 * kRows - 1);
    cells_[y / 4][x / 2] |= kBits[y % 4][x % 2];
  }
  int cells_[kRows][kCols] = {};
};

// ---- SVG ----------------------------------------------------------------------------------------

constexpr double kPlotWidth = 640, kPlotHeight = 360, kPlotLeft = 70, kPlotRight = 20,
                 kPlotTop = 40, kPlotBottom = 50;

double svg_x(double share) {
  return kPlotLeft + share * (kPlotWidth - kPlotLeft - kPlotRight);
}
double svg_y(double share) {
  return kPlotHeight - kPlotBottom - share * (kPlotHeight - kPlotTop - kPlotBottom);
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return svg_text(x, y, anchor, text, "black");
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

std::string polyline(const std::vector<double>& values, const Range& range, const char* colour) {
  std::string points;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    points += fmt::format("{:.1f},{:.1f} ", svg_x(position(i, values.size())),
                          svg_y(range.share(values[i])));
  }
  if (points.empty()) return {};
  points.pop_back();
  return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>\n",
                     colour, points);
}

std::string axes(const Range& range, size_t epochs) {
  std::string svg;
  constexpr int kTicks = 5;
  for (int i = 0; i < kTicks; ++i) {
    const double share = static_cast<double>(i) / (kTicks - 1);
    const double y = svg_y(share);
    svg += line(kPlotLeft, y, kPlotWidth - kPlotRight, y, "#dddddd");
    svg += label(kPlotLeft - 8, y + 4, "end",
                 fmt::format("{:.4g}", range.low + share * (range.high - range.low)));
  }
  const size_t step = std::max<size_t>(1, (epochs + 9) / 10);
  for (size_t i = 0; i < epochs; i += step)
    svg += label(svg_x(position(i, epochs)), kPlotHeight - kPlotBottom + 18, "middle",
                 std::to_string(i + 1));
  svg += line(kPlotLeft, svg_y(0), kPlotWidth - kPlotRight, svg_y(0), "#333333");
  svg += line(kPlotLeft, svg_y(0), kPlotLeft, svg_y(1), "#333333");
  svg += label(svg_x(0.5), kPlotHeight - 12, "middle", "epoch");
  return svg + fmt::format(
                   "<text x=\"18\" y=\"{0:.1f}\" text-anchor=\"middle\" "
                   "transform=\"rotate(-90 18 {0:.1f})\">loss</text>\n",
                   svg_y(0.5));
}

}  // namespace

std::string braille_plot(const Curves& curves, const std::string& what, const std::string& unit) {
  if (curves.train.size() < 2) return {};
  const Range range = range_of(curves);
  Dots dots;
  dots.curve(curves.train, range);
  dots.curve(curves.validation, range);
  std::string text;
  for (int r = 0; r < kRows; ++r) {
    const std::string side = r == 0           ? fmt::format("{:.4g}", range.high)
                             : r == kRows - 1 ? fmt::format("{:.4g}", range.low)
                                              : std::string();
    text += fmt::format("{:>9} {}\n", side, dots.row(r));
  }
  const int room = kCols - static_cast<int>(unit.size()) - 2;
  return text +
         fmt::format("{:>9} {} 1{:>{}}\n", what, unit, std::to_string(curves.train.size()), room);
}

std::string svg_plot(const Curves& curves, const std::string& title) {
  const Range range = range_of(curves);
  constexpr const char *kTrain = "#1f77b4", *kValidation = "#d62728";
  std::string svg = svg_open(kPlotWidth, kPlotHeight, title);
  svg += axes(range, curves.train.size());
  svg += polyline(curves.train, range, kTrain) + polyline(curves.validation, range, kValidation);
  svg += line(kPlotWidth - 200, 18, kPlotWidth - 180, 18, kTrain) +
         label(kPlotWidth - 174, 22, "start", "training");
  if (!curves.validation.empty()) {
    svg += line(kPlotWidth - 110, 18, kPlotWidth - 90, 18, kValidation) +
           label(kPlotWidth - 84, 22, "start", "validation");
  }
  return svg + "</svg>\n";
}

}  // namespace loom::cli
