// Record: one thing that is told about a run while it goes on: a number, how the values of a tensor
// are spread, or what a network is made of. Sinks (sink.hpp) write records down.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace loom::core {

// How values are spread: counts[i] of them are above limits[i - 1] and at most limits[i]. Values
// that are not finite are counted apart and are in nothing else.
struct Histogram {
  int64_t count = 0, not_finite = 0;
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits;  // rising; the last is max
  std::vector<int64_t> counts;
};
// `bins` ranges of equal width between the least and the largest value; one where they are equal,
// none where no value is finite.
Histogram make_histogram(std::span<const float> values, int bins = 30);

// One node of the picture of a network.
struct PictureNode {
  std::string name, type;
  std::vector<std::string> inputs;  // names of other nodes
  std::vector<std::pair<std::string, std::string>> attributes;
};

struct Record {
  enum class Kind : uint8_t { scalar, histogram, picture } kind = Kind::scalar;
  std::string tag;  // "loss/train"
  int64_t step = 0;
  double wall = 0;   // seconds since 1970
  double value = 0;  // of a scalar
  Histogram histogram{};
  std::vector<PictureNode> nodes{};  // of a picture
};

}  // namespace loom::core
