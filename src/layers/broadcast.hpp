// Tensors of unequal shapes in ops value by value, as NumPy broadcasts them. Private to the room.
#pragma once

#include "layers/layer.hpp"
#include "ops/args/elementwise.hpp"

namespace loom::core {

// The shape of both together: axes are aligned at the last one, and an extent of 1 stands for any.
// Errors: two extents that differ and are not 1.
Result<Shape> broadcast_shape(const Shape& a, const Shape& b);
// t repeated to that shape; t itself where it has it.
Result<Tensor> expanded(ForwardCall& call, const Tensor& t, const Shape& out);
// a f b, of that shape. What the op takes as it is (one row, one column, one value for the right
// side) is not copied.
Result<Tensor> broadcast_binary(ForwardCall& call, const Tensor& a, const Tensor& b,
                                BinaryKind kind);

}  // namespace loom::core
