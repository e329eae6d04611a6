#include "layers/spatial/axes.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "layers/core/forward_call.hpp"
#include "ops/moves.hpp"

namespace loom::core {

Result<int> axis_from_front(std::string_view layer, int64_t axis, int rank) {
  const int64_t from_front = axis < 0 ? axis + rank : axis;
  if (from_front >= 0 && from_front < rank) return static_cast<int>(from_front);
  return invalid(cat(layer, ": axis ", axis, " is not one of the ", rank, " axes of its input"));
}

Result<std::vector<int>> axes_from_front(std::string_view layer, const std::vector<int64_t>& axes,
                                         int rank) {
  std::vector<int> out;
  for (const int64_t axis : axes) {
    LOOM_ASSIGN(const int one, axis_from_front(layer, axis, rank));
    out.push_back(one);
  }
  for (int i = 0; axes.empty() && i < rank; ++i) out.push_back(i);
  std::sort(out.begin(), out.end());
  const auto twice = std::adjacent_find(out.begin(), out.end());
  if (twice == out.end()) return out;
  return invalid(cat(layer, ": axis ", *twice, " is named twice"));
}

std::vector<int64_t> axis_extents(const Shape& shape) {
  std::vector<int64_t> out;
  for (int i = 0; i < shape.rank(); ++i) out.push_back(shape[i]);
  return out;
}

Shape shape_of(const std::vector<int64_t>& extents) {
  Shape out;
  for (size_t i = extents.size(); i-- > 0;) out = out.after(extents[i]);
  return out;
}

Result<Tensor> permuted(ForwardCall& call, const Tensor& t, const std::vector<int>& axes) {
  std::vector<int64_t> extents;
  for (const int axis : axes) extents.push_back(t.shape[axis]);
  LOOM_ASSIGN(const Tensor y, call.tensor(shape_of(extents)));
  LOOM_TRY(call.ops().copy(permute(t, axis_extents(t.shape), axes, y)));
  return y;
}

}  // namespace loom::core
