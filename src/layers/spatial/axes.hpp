// Axes of a tensor as fields name them: the batch is axis 0; negative axes count from the last.
#pragma once

#include <string_view>
#include <vector>

#include "layers/core/layer.hpp"

namespace loom::core {

// The axis counted from the front. Errors: no such axis; the message names the layer.
Result<int> axis_from_front(std::string_view layer, int64_t axis, int rank);
// The same for a list, ascending and without repeats. An empty list means all axes.
Result<std::vector<int>> axes_from_front(std::string_view layer, const std::vector<int64_t>& axes,
                                         int rank);
// The extents of a shape, in the form that the walks of ops/moves.hpp take.
std::vector<int64_t> axis_extents(const Shape& shape);
Shape shape_of(const std::vector<int64_t>& extents);
// t with its axes in another order: axis k is axis axes[k] of t.
Result<Tensor> permuted(ForwardCall& call, const Tensor& t, const std::vector<int>& axes);

}  // namespace loom::core
