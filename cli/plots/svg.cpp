#include "svg.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace loom::cli {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string svg_text(double x, double y, const char* anchor, const std::string& text,
                     const char* color) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n",
                     x, y, anchor, color, escaped(text));
}

std::string svg_open(double width, double height, const std::string& title) {
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
             width, height) +
         svg_text(16, 22, "start", title);
}

namespace {

// 1, 2 or 5 times a power of ten, at least `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

Axis round_axis(double low, double high, int count, bool share) {
  if (!(high - low > 1e-12 * std::max(std::fabs(low), std::fabs(high)))) {
    const double room = low == 0 ? 1 : std::fabs(low) / 10;
    if (!share || high + room <= 1) high += room;
    low -= low >= 0 ? std::min(room, low) : room;
  }
  Axis axis;
  axis.step = round_step((high - low) / count);
  axis.low = std::floor(low / axis.step + 1e-9) * axis.step;
  axis.high = std::ceil(high / axis.step - 1e-9) * axis.step;
  if (low >= 0) axis.low = std::max(axis.low, 0.0);
  if (share) axis.high = std::min(axis.high, 1.0);
  return axis;
}

std::vector<double> Axis::ticks() const {
  std::vector<double> all;
  const auto steps = static_cast<int>(std::lround((high - low) / step));
  for (int i = 0; i <= steps; ++i) all.push_back(low + i * step);
  return all;
}

std::string Axis::label(double tick) const {
  if (std::fabs(tick) < step / 2) return "0";
  const double most = std::max(std::fabs(low), std::fabs(high));
  if (most >= 1e6 || step < 1e-5) return fmt::format("{:.4g}", tick);
  const int digits = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return fmt::format("{:.{}f}", tick, digits);
}

size_t label_step(size_t count, size_t labels) {
  const double least = static_cast<double>(count) / static_cast<double>(labels);
  return std::max<size_t>(1, static_cast<size_t>(std::lround(round_step(std::max(least, 1.0)))));
}

// ---- heat maps ----------------------------------------------------------------------------------

namespace {

constexpr size_t kMaxTerminal = 48;

// White at 0, dark blue at 1, dark red at -1; grey if there is nothing to compare.
std::string heat_color(double value) {
  if (!std::isfinite(value)) return "#eeeeee";
  const double depth = std::min(std::fabs(value), 1.0);
  const auto channel = [&](int full) {
    return static_cast<int>(std::lround(255 + depth * (full - 255)));
  };
  return value >= 0 ? fmt::format("#{:02x}{:02x}{:02x}", channel(8), channel(48), channel(107))
                    : fmt::format("#{:02x}{:02x}{:02x}", channel(103), channel(0), channel(13));
}

std::string heat_legend(double x, double y) {
  constexpr int kSteps = 9;
  constexpr double kStep = 18;
  std::string svg;
  for (int i = 0; i < kSteps; ++i) {
    const double value = -1 + 2.0 * i / (kSteps - 1);
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"10\" fill=\"{}\"/>\n",
                       x + i * kStep, y, kStep, heat_color(value));
  }
  svg += svg_text(x - 6, y + 9, "end", "-1");
  return svg + svg_text(x + kSteps * kStep + 6, y + 9, "start", "1");
}

// If several values share a square: the one farthest from 0.
double strongest(const HeatMap& map, size_t row, size_t col, size_t step) {
  double best = std::nan("");
  const size_t width = map.columns.size();
  for (size_t i = row * step; i < std::min((row + 1) * step, map.rows.size()); ++i) {
    for (size_t j = col * step; j < std::min((col + 1) * step, width); ++j) {
      const double v = map.values[i * width + j];
      if (std::isfinite(v) && !(std::fabs(best) >= std::fabs(v))) best = v;
    }
  }
  return best;
}

const char* shade(double value) {
  if (!std::isfinite(value)) return " .";
  if (value < -0.2) return " -";
  if (value < 0.2) return "  ";
  return value < 0.5    ? "\u2591\u2591"
         : value < 0.8  ? "\u2592\u2592"
         : value < 0.95 ? "\u2593\u2593"
                        : "\u2588\u2588";
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  constexpr double kTop = 60, kRight = 20, kLetter = 6.5;
  size_t longest = 8;
  for (const std::string& name : map.rows) longest = std::max(longest, name.size());
  for (const std::string& name : map.columns) longest = std::max(longest, name.size());
  const size_t most = std::max({map.rows.size(), map.columns.size(), size_t{1}});
  const double cell = std::clamp(560.0 / static_cast<double>(most), 1.0, 40.0);
  const bool named = cell >= 12;
  const double margin = named ? 24 + kLetter * static_cast<double>(longest) : 40;
  const double bottom = named ? margin : 50;
  const double width = std::max(margin + static_cast<double>(map.columns.size()) * cell + kRight,
                                kLetter * static_cast<double>(map.title.size()) + 40);
  const double low = kTop + static_cast<double>(map.rows.size()) * cell;
  std::string svg = svg_open(width, low + bottom, map.title) + heat_legend(40, 34);
  for (size_t i = 0; i < map.rows.size(); ++i) {
    const double y = kTop + static_cast<double>(i) * cell;
    if (named) svg += svg_text(margin - 6, y + cell / 2 + 4, "end", map.rows[i]);
    for (size_t j = 0; j < map.columns.size(); ++j) {
      const double v = map.values[i * map.columns.size() + j];
      const std::string says = std::isfinite(v) ? fmt::format("{:.3f}", v) : "another kind";
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\">"
          "<title>{} and {}: {}</title></rect>\n",
          margin + static_cast<double>(j) * cell, y, cell, cell, heat_color(v),
          escaped(map.rows[i]), escaped(map.columns[j]), says);
    }
  }
  for (size_t j = 0; named && j < map.columns.size(); ++j) {
    const double x = margin + (static_cast<double>(j) + 0.5) * cell + 4;
    svg += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1:.1f}\" text-anchor=\"end\" fill=\"#333333\" "
        "transform=\"rotate(-90 {0:.1f} {1:.1f})\">{2}</text>\n",
        x, low + 6, escaped(map.columns[j]));
  }
  return svg + "</svg>\n";
}

std::string heat_map_text(const HeatMap& map) {
  const size_t most = std::max(map.rows.size(), map.columns.size());
  const size_t step = std::max<size_t>(1, (most + kMaxTerminal - 1) / kMaxTerminal);
  size_t longest = 0;
  for (const std::string& name : map.rows) longest = std::max(longest, name.size());
  std::string text;
  for (size_t i = 0; i * step < map.rows.size(); ++i) {
    text += fmt::format("{:>{}} ", map.rows[i * step], longest);
    for (size_t j = 0; j * step < map.columns.size(); ++j)
      text += shade(strongest(map, i, j, step));
    text += "|\n";
  }
  return text;
}

}  // namespace loom::cli
