// The output of a network as losses read it: the last axis holds the values of one prediction.
#pragma once

#include "grid/network.hpp"

namespace loom::core {

// [n, 1] for an output that has no axis but the samples', whose predictions are one number each.
inline Shape predictions_of(const Shape& output) {
  return output.rank() == 1 ? Shape{output[0], 1} : output;
}
inline Shape predictions_of(const Network& network) {
  return predictions_of(network.output());
}
// `y`, of the shape of an output.
inline Tensor predictions_of(const Tensor& y) {
  return y.shape.rank() == 1 ? as_matrix(y, y.shape[0], 1) : y;
}

}  // namespace loom::core
