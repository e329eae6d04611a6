// SVG drawing for several commands: a page with a title, text, and heat maps, which a terminal
// shows too.
#pragma once

#include <string>
#include <vector>

namespace loom::cli {

// Text escaped for SVG.
std::string escaped(const std::string& text);
// `anchor`: "start", "middle" or "end".
std::string svg_text(double x, double y, const char* anchor, const std::string& text,
                     const char* color = "#333333");
// The head of a document on white, with its title; end it with "</svg>".
std::string svg_open(double width, double height, const std::string& title);

// An axis with round ticks: steps of 1, 2 or 5 times a power of ten.
struct Axis {
  double low = 0, high = 1, step = 0.2;

  double share(double value) const { return (value - low) / (high - low); }  // 0 at low, 1 at high
  std::vector<double> ticks() const;
  std::string label(double tick) const;  // with the digits that the step needs
};
// The axis of values from `low` to `high`, with at most `count` steps, widened to whole steps. It
// does not go below 0 if no value does. `share`: values are shares, so it does not go above 1.
Axis round_axis(double low, double high, int count, bool share = false);
// The step between labels of 1, 2, ... `count`, for at most `labels` of them.
size_t label_step(size_t count, size_t labels);

// A square for each of rows x columns, by its value from -1 to 1; NaN: empty.
struct HeatMap {
  std::string title;
  std::vector<std::string> rows, columns;  // names
  std::vector<double> values;              // [rows][columns]
};
// A whole document; each square shows its names and value as a tooltip.
std::string heat_map_svg(const HeatMap& map);
// Two characters for each square, darker with its value, "." for NaN and "-" below zero. More than
// 48 rows or columns are merged.
std::string heat_map_text(const HeatMap& map);

}  // namespace loom::cli
