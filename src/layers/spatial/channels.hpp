// Helpers for layers over channels: x [B, C, ...] as a matrix with a channel per row or per column,
// and one value per channel for it. Private to the room.
#pragma once

#include "layers/core/layer.hpp"
#include "ops/args/elementwise.hpp"

namespace loom::core {

// x [B, C, S...] as [B*C, S], or, if S is 1, as [B, C].
struct Channels {
  int64_t samples = 0, channels = 0, spots = 0;  // B, C, S
  Tensor x;
  bool flat() const { return spots == 1; }
};
Channels channels_of(const Tensor& x);
// New memory of the same extents.
Result<Tensor> like(ForwardCall& call, const Channels& c);
// t, of the extents of c.x, in the shape of the layer's input.
Tensor as_input(const Tensor& t, const Tensor& input);
// values [C] as an operand of binary ops on c.x: the row itself, or a column [B*C, 1].
Result<Tensor> per_channel(ForwardCall& call, const Channels& c, const Tensor& values);
// y = a op values, value by value.
Result<Tensor> with_channels(ForwardCall& call, const Channels& c, const Tensor& a,
                             const Tensor& values, BinaryKind kind);
// y = x * gamma + beta, per channel.
Result<Tensor> scale_and_shift(ForwardCall& call, const Channels& c, const Tensor& x,
                               const Tensor& gamma, const Tensor& beta);
// a op b in memory of a's shape.
Result<Tensor> combined(ForwardCall& call, const Tensor& a, const Tensor& b, BinaryKind kind);
// Checks that `in` is [batch, channels, ...] with at least `axes` axes after the channels.
Status check_channels(const LayerConfig& c, const Shape& in, int64_t channels, int axes);

}  // namespace loom::core
