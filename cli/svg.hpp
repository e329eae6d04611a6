// Pictures as SVG that several commands draw: a page with a title, text, and heat maps, which a
// terminal shows too.
#pragma once

#include <string>
#include <vector>

namespace loom::cli {

// Text as it stands inside an SVG.
std::string escaped(const std::string& text);
// `anchor`: "start", "middle" or "end".
std::string svg_text(double x, double y, const char* anchor, const std::string& text,
                     const char* color = "#333333");
// The head of a document on white, with its title; "</svg>" ends it.
std::string svg_open(double width, double height, const std::string& title);

// A square for each of rows x columns, by its value from -1 to 1; NaN: nothing to show.
struct HeatMap {
  std::string title;
  std::vector<std::string> rows, columns;  // names
  std::vector<double> values;              // [rows][columns]
};
// A whole document; each square says its names and value to who points at it.
std::string heat_map_svg(const HeatMap& map);
// Two characters for each square, darker with its value, "." for NaN and "-" below zero; of more
// than 48 rows or columns, several share one.
std::string heat_map_text(const HeatMap& map);

}  // namespace loom::cli
