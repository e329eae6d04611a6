// Axes of a tensor as fields name them: the batch is axis 0, negative ones count from the last.
#pragma once

#include <string_view>
#include <vector>

#include "layers/layer.hpp"

namespace loom::core {

// The axis counted from the front. Errors: there is none of that number, in the words of the layer.
Result<int> axis_from_front(std::string_view layer, int64_t axis, int rank);
// The same of a list, ascending; each stands once. An empty list: all axes.
Result<std::vector<int>> axes_from_front(std::string_view layer, const std::vector<int64_t>& axes,
                                         int rank);
// The extents of a shape, as walks of ops/moves.hpp take them.
std::vector<int64_t> axis_extents(const Shape& shape);
Shape shape_of(const std::vector<int64_t>& extents);
// t with its axes in another order: axis k is axis axes[k] of t.
Result<Tensor> permuted(ForwardCall& call, const Tensor& t, const std::vector<int>& axes);

}  // namespace loom::core
