// Windows of convolutions and pooling: the attributes that both have, as a ConvShape.
#pragma once

#include <algorithm>
#include <utility>

#include "onnx/interpreter/products.hpp"

namespace loom::core::evaluate {

// Spatial axes are the last of the three that a ConvShape has.
struct Windows {
  ConvShape shape;
  int axes = 0;
  int64_t pad_end[3] = {0, 0, 0};
  int64_t slot(int axis) const { return 3 - axes + axis; }
  Dims out_dims(int64_t batch, int64_t channels) const;
};
// The windows of `kernel` over an input [N, C, ...]. `ceil`: outputs are rounded up, but no window
// begins after the input. Errors: invalid attributes; more than three spatial axes.
Result<Windows> windows_of(const Call& c, const Dims& x, const Dims& kernel, bool ceil = false);
// An attribute with a number per axis, `otherwise` where it is absent.
Result<Dims> per_axis(const Call& c, std::string_view name, int axes, int64_t otherwise,
                      int64_t least);

// Constant weights of a convolution, packed, with an activation after the bias; null if `prepared`
// has one already.
std::shared_ptr<const Prepared> with_activation(const std::shared_ptr<const Prepared>& prepared,
                                                Activation activation);

// The outputs of one axis whose tap `t` is inside of the input: [first, second).
inline std::pair<int64_t, int64_t> outputs_inside(const ConvShape& s, int axis, int64_t t) {
  const int64_t shift = t * s.dilation[axis] - s.pad[axis], stride = s.stride[axis];
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = s.in[axis] - 1 - shift;
  return {first, last < 0 ? first : std::min(s.out[axis], last / stride + 1)};
}

// Calls row(output, input, count) for each row of outputs that tap `tap` meets inside of the input:
// places of the first of count outputs and of its input; the next input is stride[2] further.
template <class Row>
void each_row_of_tap(const ConvShape& s, int64_t tap, const Row& row) {
  const int64_t t[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                        tap % s.kernel[2]};
  const auto [d0, d1] = outputs_inside(s, 0, t[0]);
  const auto [h0, h1] = outputs_inside(s, 1, t[1]);
  const auto [w0, w1] = outputs_inside(s, 2, t[2]);
  const auto at = [&](int axis, int64_t o) {
    return o * s.stride[axis] + t[axis] * s.dilation[axis] - s.pad[axis];
  };
  if (w1 <= w0) return;
  for (int64_t d = d0; d < d1; ++d) {
    for (int64_t h = h0; h < h1; ++h) {
      const int64_t in = (at(0, d) * s.in[1] + at(1, h)) * s.in[2] + at(2, w0);
      row((d * s.out[1] + h) * s.out[2] + w0, in, w1 - w0);
    }
  }
}

// y [N, F, out] of x [N, C, in] and w [F, C/groups, taps] by plain loops, in T; x is 0 outside.
// Sums go over the patch in its order.
template <class T>
void convolve_plainly(const Call& c, const T* x, const T* w, T* y, int64_t batch,
                      const ConvShape& s) {
  const int64_t in = s.in_positions(), out = s.out_positions(), patch = s.patch();
  const int64_t per_group = s.filters / s.groups, channels = s.channels / s.groups;
  const int64_t step = s.stride[2];
  c.parallel(batch * s.filters, static_cast<double>(out * patch), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t f = r % s.filters, first = f / per_group * channels;
      T* sums = y + r * out;
      std::fill_n(sums, out, T{});
      for (int64_t k = 0; k < patch; ++k) {
        const T* image = x + (r / s.filters * s.channels + first + k / s.taps()) * in;
        const T weight = w[f * patch + k];
        each_row_of_tap(s, k % s.taps(), [&](int64_t o, int64_t i, int64_t count) {
          for (int64_t n = 0; n < count; ++n) sums[o + n] += image[i + n * step] * weight;
        });
      }
    }
  });
}

}  // namespace loom::core::evaluate
