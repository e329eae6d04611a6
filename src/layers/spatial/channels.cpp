#include "layers/spatial/channels.hpp"

#include "base/text.hpp"
#include "layers/core/forward_call.hpp"

namespace loom::core {

Channels channels_of(const Tensor& x) {
  Channels c;
  c.samples = x.shape[0];
  c.channels = x.shape[1];
  c.spots = 1;
  for (int i = 2; i < x.shape.rank(); ++i) c.spots *= x.shape[i];
  c.x = c.flat() ? as_matrix(x, c.samples, c.channels)
                 : as_matrix(x, c.samples * c.channels, c.spots);
  return c;
}

Result<Tensor> like(ForwardCall& call, const Channels& c) {
  return call.tensor(c.x.shape);
}

Tensor as_input(const Tensor& t, const Tensor& input) {
  Tensor y = t;
  y.shape = input.shape;
  y.row_stride = input.shape.last();
  return y;
}

Result<Tensor> per_channel(ForwardCall& call, const Channels& c, const Tensor& values) {
  if (c.flat()) return values;
  LOOM_ASSIGN(const Tensor zeros, call.tensor(Shape{c.samples, c.channels}));
  LOOM_ASSIGN(const Tensor all, call.like(zeros));
  LOOM_TRY(call.ops().fill({zeros, 0.0f}));
  LOOM_TRY(call.ops().binary({zeros, values, all, BinaryKind::add}));
  return as_matrix(all, c.samples * c.channels, 1);
}

Result<Tensor> with_channels(ForwardCall& call, const Channels& c, const Tensor& a,
                             const Tensor& values, BinaryKind kind) {
  LOOM_ASSIGN(const Tensor b, per_channel(call, c, values));
  return combined(call, a, b, kind);
}

Result<Tensor> scale_and_shift(ForwardCall& call, const Channels& c, const Tensor& x,
                               const Tensor& gamma, const Tensor& beta) {
  LOOM_ASSIGN(const Tensor scaled, with_channels(call, c, x, gamma, BinaryKind::mul));
  return with_channels(call, c, scaled, beta, BinaryKind::add);
}

Result<Tensor> combined(ForwardCall& call, const Tensor& a, const Tensor& b, BinaryKind kind) {
  LOOM_ASSIGN(const Tensor y, call.like(a));
  LOOM_TRY(call.ops().binary({a, b, y, kind}));
  return y;
}

Status check_channels(const LayerConfig& c, const Shape& in, int64_t channels, int axes) {
  if (in.rank() >= 2 + axes && in[1] == channels && in.count() > 0) return {};
  return invalid(cat(c.def->name, ": input ", in.str(), " must be [batch, ", channels,
                     axes > 0 ? ", ...], with an extent after the channels" : ", ...]"));
}

}  // namespace loom::core
