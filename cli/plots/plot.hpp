// Loss curves: as braille characters for a terminal, and as SVG.
#pragma once

#include <string>
#include <vector>

namespace loom::cli {

struct Curves {
  std::vector<double> train, validation;  // per epoch; validation may be empty
};

// A few lines of text, with the smallest and largest loss at the side; "" with fewer than two
// epochs. `what` is on the axis, by `unit`.
std::string braille_plot(const Curves& curves, const std::string& what = "loss",
                         const std::string& unit = "epoch");
// A whole SVG document: axes with numbers, both curves, a legend.
std::string svg_plot(const Curves& curves, const std::string& title);

}  // namespace loom::cli
