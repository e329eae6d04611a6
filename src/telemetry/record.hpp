// Record: one item that a run reports while it runs: a number, the histogram of a tensor, or the
// graph of a network. Sinks (sink.hpp) write records.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace loom::core {

// A histogram: counts[i] values are above limits[i - 1] and at most limits[i]. Values that are not
// finite are only counted, separately.
struct Histogram {
  int64_t count = 0, not_finite = 0;
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits;  // rising; the last is max
  std::vector<int64_t> counts;
};
// `bins` ranges of equal width between the minimum and the maximum. There is one bin if these are
// equal, and none if no value is finite.
Histogram make_histogram(std::span<const float> values, int bins = 30);

// The position of a cell: z, y, x, l.
using Place = std::array<int64_t, 4>;

// The content of a grid cell, for viewers that draw the grid.
struct PictureCell {
  Place at{};
  int dtype = 0;           // the number of its matrices' type
  int64_t parameters = 0;  // of the cell and its descendants
  std::vector<Place> links;
  std::string combine;                // of a Parallel
  std::vector<std::string> branches;  // types of its children
};

// One node of the graph of a network.
struct PictureNode {
  std::string name, type;
  std::vector<std::string> inputs;  // names of other nodes
  std::vector<std::pair<std::string, std::string>> attributes;
  std::optional<PictureCell> cell{};  // unset: the input
};

// A layer that a run has just executed.
struct LayerPassed {
  Place at{};
  std::string type;
  bool backward = false;
  int64_t begin_ns = 0, end_ns = 0;  // since 1970
  std::vector<int64_t> shape;        // of its output
};

struct Record {
  enum class Kind : uint8_t { scalar, histogram, picture, pass, sweep } kind = Kind::scalar;
  std::string tag;   // "loss/train"
  int64_t step = 0;  // of a pass and a sweep: how many of both were reported so far
  double wall = 0;   // seconds since 1970
  double value = 0;  // of a scalar
  Histogram histogram{};
  std::vector<PictureNode> nodes{};  // of a network graph
  LayerPassed pass{};                // of a pass; a sweep, which begins a run, only has a tag
};

}  // namespace loom::core
