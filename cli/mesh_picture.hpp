// The activity of a mesh over its ticks: in characters for a terminal, and as SVG.
#pragma once

#include <string>
#include <vector>

namespace loom::cli {

struct Activity {
  std::vector<std::string> cells;           // names
  std::vector<std::vector<double>> values;  // [tick][cell]: mean magnitude; NaN: nothing yet
};

// A line per cell, brighter where its values are larger; '.' where it holds nothing yet.
std::string activity_text(const Activity& activity);
// A whole SVG document with the same.
std::string activity_svg(const Activity& activity, const std::string& title);

}  // namespace loom::cli
