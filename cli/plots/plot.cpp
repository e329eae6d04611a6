#include "plot.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "../shared/terminal.hpp"
#include "svg.hpp"

namespace loom::cli {
namespace {

// The least and the largest finite value.
std::pair<double, double> range_of(const Curves& c) {
  double low = 0, high = 1;
  bool any = false;
  for (const auto* list : {&c.train, &c.validation}) {
    for (const double v : *list) {
      if (!std::isfinite(v)) continue;
      low = any ? std::min(low, v) : v;
      high = any ? std::max(high, v) : v;
      any = true;
    }
  }
  if (high - low < 1e-12) high = low + 1;
  return {low, high};
}

// The position of epoch i of n, from 0 to 1.
double position(size_t i, size_t n) {
  return n < 2 ? 0.0 : static_cast<double>(i) / static_cast<double>(n - 1);
}

// ---- terminal -----------------------------------------------------------------------------------

// Characters; each is 2 x 4 dots.
constexpr int kRows = 6, kSide = 10, kMinCols = 24, kPlainCols = 48, kMaxCols = 160;

class Dots {
 public:
  explicit Dots(int columns) : columns_(columns) {
    for (auto& row : cells_) row.resize(static_cast<size_t>(columns));
  }
  // `every`: draws each dot, or with 4 every fourth.
  void curve(const std::vector<double>& values, const Axis& range, int every) {
    for (int x = 0; x < 2 * columns_ && !values.empty(); x += every) {
      const double at =
          static_cast<double>(x) / (2 * columns_ - 1) * static_cast<double>(values.size() - 1);
      const auto i = static_cast<size_t>(at);
      const double next = values[std::min(i + 1, values.size() - 1)];
      const double v = values[i] + (next - values[i]) * (at - static_cast<double>(i));
      if (std::isfinite(v))
        dot(x, static_cast<int>(std::lround((1 - range.share(v)) * (4 * kRows - 1))));
    }
  }
  std::string row(int r) const {
    std::string text;
    for (const int bits : cells_[r]) {  // U+2800 + bits, in UTF-8
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
    cells_[y / 4][static_cast<size_t>(x / 2)] |= kBits[y % 4][x % 2];
  }
  int columns_;
  std::vector<int> cells_[kRows];
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

std::string polyline(const std::vector<double>& values, const Axis& range, const char* colour) {
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

std::string axes(const Axis& range, size_t epochs) {
  std::string svg;
  for (const double tick : range.ticks()) {
    const double y = svg_y(range.share(tick));
    svg += line(kPlotLeft, y, kPlotWidth - kPlotRight, y, "#dddddd");
    svg += label(kPlotLeft - 8, y + 4, "end", range.label(tick));
  }
  const size_t step = label_step(epochs, 10);
  for (size_t i = step; i <= epochs; i += step)
    svg += label(svg_x(position(i - 1, epochs)), kPlotHeight - kPlotBottom + 18, "middle",
                 std::to_string(i));
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
  const auto [low, high] = range_of(curves);
  const Axis range{low, high, high - low};
  const int columns = std::clamp(terminal_width(kSide + kPlainCols) - kSide, kMinCols, kMaxCols);
  Dots dots(columns);
  dots.curve(curves.train, range, 1);
  dots.curve(curves.validation, range, 4);
  std::string text;
  for (int r = 0; r < kRows; ++r) {
    const std::string side = r == 0           ? fmt::format("{:.4g}", range.high)
                             : r == kRows - 1 ? fmt::format("{:.4g}", range.low)
                                              : std::string();
    text += fmt::format("{:>9} {}\n", side, dots.row(r));
  }
  const int room = columns - static_cast<int>(unit.size()) - 2;
  text += fmt::format("{:>9} {} 1{:>{}}\n", what, unit, std::to_string(curves.train.size()), room);
  if (curves.validation.empty()) return text;
  return text +
         fmt::format("{:>9} \u2824\u2824\u2824 training   \u2804\u2804\u2804 validation\n", "");
}

std::string svg_plot(const Curves& curves, const std::string& title) {
  const auto [low, high] = range_of(curves);
  const Axis range = round_axis(low, high, 6);
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
