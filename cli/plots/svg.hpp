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
