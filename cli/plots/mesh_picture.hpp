// The activity of a mesh over its ticks: in characters for a terminal, and as SVG.
#pragma once

#include <string>
#include <vector>

namespace loom::cli {

struct Activity {
  std::vector<std::string> cells;           // names
  std::vector<std::vector<double>> values;  // [tick][cell]: mean magnitude; NaN: nothing yet
};

// A line per cell, brighter for larger values; '.' while it has no value.
std::string activity_text(const Activity& activity);
// The same as a whole SVG document.
std::string activity_svg(const Activity& activity, const std::string& title);

}  // namespace loom::cli
