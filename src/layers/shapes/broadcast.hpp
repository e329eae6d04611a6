// Value-wise ops on tensors of unequal shapes, with NumPy's broadcasting. Private to the room.
#pragma once

#include "layers/core/layer.hpp"
#include "ops/args/elementwise.hpp"

namespace loom::core {

// The broadcast shape: axes align at the last one, and an extent of 1 repeats. Errors: two extents
// that differ and are not 1.
Result<Shape> broadcast_shape(const Shape& a, const Shape& b);
// t repeated to that shape; t itself if it has it.
Result<Tensor> expanded(ForwardCall& call, const Tensor& t, const Shape& out);
// a f b, of that shape. Right sides that the op supports directly (one row, column or value) are
// not copied.
Result<Tensor> broadcast_binary(ForwardCall& call, const Tensor& a, const Tensor& b,
                                BinaryKind kind);

}  // namespace loom::core
