#include "layers/shapes/broadcast.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/spatial/axes.hpp"
#include "ops/moves.hpp"

namespace loom::core {
namespace {

// The shape with extents of 1 in front up to `rank`.
Shape aligned(const Shape& shape, int rank) {
  Shape out = shape;
  while (out.rank() < rank) out = out.after(1);
  return out;
}

// Whether the op supports b with an a of the result's shape: the same shape, one row, one column,
// or one value.
bool taken_as_is(const Shape& b, const Shape& out) {
  if (b.count() == 1 || b == out) return true;
  if (b.last() == out.last() && b.count() == b.last()) return true;  // a row
  return b.last() == 1 && b.count() == out.rows();                   // a column
}

}  // namespace

Result<Tensor> expanded(ForwardCall& call, const Tensor& t, const Shape& out) {
  if (t.shape == out) return t;
  LOOM_ASSIGN(const Tensor y, call.tensor(out));
  LOOM_TRY(
      call.ops().copy(expand(t, axis_extents(aligned(t.shape, out.rank())), y, axis_extents(out))));
  return y;
}

Result<Shape> broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape out = aligned(a, rank);
  const Shape other = aligned(b, rank);
  for (int i = 0; i < rank; ++i) {
    if (out[i] == 1) out[i] = other[i];
    if (other[i] == 1 || other[i] == out[i]) continue;
    return invalid(cat(a.str(), " and ", b.str(), " cannot be broadcast: axes of ", out[i], " and ",
                       other[i]));
  }
  return out;
}

Result<Tensor> broadcast_binary(ForwardCall& call, const Tensor& a, const Tensor& b,
                                BinaryKind kind) {
  LOOM_ASSIGN(const Shape out, broadcast_shape(a.shape, b.shape));
  const bool commutes = kind != BinaryKind::sub && kind != BinaryKind::div;
  const Tensor& wide = commutes && !(aligned(a.shape, out.rank()) == out) ? b : a;
  const Tensor& other = &wide == &a ? b : a;
  LOOM_ASSIGN(Tensor left, expanded(call, wide, out));
  Tensor right = other;
  right.shape = aligned(other.shape, out.rank());
  if (!taken_as_is(right.shape, out)) {
    LOOM_ASSIGN(right, expanded(call, other, out));
  }
  LOOM_ASSIGN(const Tensor y, call.tensor(out));
  left.shape = out;
  LOOM_TRY(call.ops().binary({left, right, y, kind}));
  return y;
}

}  // namespace loom::core
