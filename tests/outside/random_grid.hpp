// Random networks for tests: cells at random positions of a grid, containers, links, shared cells.
// The same seed gives the same network on every machine.
#pragma once

#include <cstdint>
#include <map>

#include "grid/builders.hpp"

namespace loom::core::outside {

struct GridOptions {
  uint64_t seed = 0;
  bool feedback = false;  // at least one feedback link
  // At least one feedback link reads a cell with another width than the cell before its reader.
  bool any_width = false;
  bool sharing = false;  // at least one cell that shares parameters
  bool shorter = false;  // [T, D] inputs, and nothing that needs all T steps
  bool smooth = false;   // for f32: no layer with a kink, none that loses its gradient to rounding
  int64_t batch = 2;
};

struct RandomGrid {
  NetworkSpec spec;
  int64_t vocab = 0;  // > 0: the input are ids below it
  int feedback_links = 0, skip_links = 0, shared_cells = 0;
  std::map<int64_t, Shape> fed_back;  // outputs of cells that feedback links read, by flat index
  std::string str() const;            // its cells, for the message of a failure
};

RandomGrid random_grid(const GridOptions& options);

}  // namespace loom::core::outside
