// Layer observers: what every layer gave, and what gradient came back to it, while a network
// trains. For curves of a layer's range, dead units, exploding gradients.
#pragma once

#include <functional>
#include <string_view>

#include "grid/network.hpp"

namespace loom::core {

struct ValueStats {
  double mean = 0, std = 0, min = 0, max = 0;
  int64_t active = 0;  // |x| > 1e-6
  int64_t total = 0;
};
// Statistics of plain f32 values, summed in order in double precision. A value that is not finite
// makes mean and std not finite, and does not count for min and max.
ValueStats value_stats(const Tensor& values);

struct LayerEvent {
  Coord at;
  std::string_view kind;  // of the layer
  bool backward = false;  // the gradient of its output, else its output
  Tensor values;          // to be read during the call only
};
// Called on the thread that trains, in the order of computation. The stats are the observer's to
// ask for: value_stats(event.values).
using LayerObserver = std::function<void(const LayerEvent&)>;

}  // namespace loom::core
