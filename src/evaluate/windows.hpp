// Windows of convolutions and pooling: the attributes that both have, as a ConvShape.
#pragma once

#include "evaluate/products.hpp"

namespace loom::core::evaluate {

// Spatial axes are the last of the three that a ConvShape has.
struct Windows {
  ConvShape shape;
  int axes = 0;
  int64_t pad_end[3] = {0, 0, 0};
  int64_t slot(int axis) const { return 3 - axes + axis; }
  Dims out_dims(int64_t batch, int64_t channels) const;
};
// Of an input [N, C, ...] with windows of `kernel`. `ceil`: outputs are rounded up, but no window
// begins behind the input. Errors: attributes that are none; more than three spatial axes.
Result<Windows> windows_of(const Call& c, const Dims& x, const Dims& kernel, bool ceil = false);
// An attribute with a number per axis, `otherwise` where it is absent.
Result<Dims> per_axis(const Call& c, std::string_view name, int axes, int64_t otherwise,
                      int64_t least);

// Constant weights of a convolution, packed, with an activation behind the bias; null where
// `prepared` has one already.
std::shared_ptr<const Prepared> with_activation(const std::shared_ptr<const Prepared>& prepared,
                                                Activation activation);

// y [N, F, out] of x [N, C, in] and w [F, C/groups, taps] by plain loops, in T; x is 0 outside.
template <class T>
void convolve_plainly(const Call& c, const T* x, const T* w, T* y, int64_t batch,
                      const ConvShape& s) {
  const int64_t in = s.in_positions(), out = s.out_positions(), patch = s.patch();
  const int64_t per_group = s.filters / s.groups, channels = s.channels / s.groups;
  c.parallel(batch * s.filters, static_cast<double>(out * patch), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t f = r % s.filters, first = f / per_group * channels;
      const T* image = x + (r / s.filters * s.channels + first) * in;
      for (int64_t o = 0; o < out; ++o) {
        const int64_t at[3] = {o / (s.out[1] * s.out[2]), o / s.out[2] % s.out[1], o % s.out[2]};
        T sum{};
        for (int64_t k = 0; k < patch; ++k) {
          const int64_t tap = k % s.taps();
          const int64_t t[3] = {tap / (s.kernel[1] * s.kernel[2]), tap / s.kernel[2] % s.kernel[1],
                                tap % s.kernel[2]};
          int64_t place = k / s.taps();
          bool inside = true;
          for (int a = 0; a < 3; ++a) {
            const int64_t i = at[a] * s.stride[a] + t[a] * s.dilation[a] - s.pad[a];
            inside = inside && i >= 0 && i < s.in[a];
            place = place * s.in[a] + i;
          }
          if (inside) sum += image[place] * w[f * patch + k];
        }
        y[r * out + o] = sum;
      }
    }
  });
}

}  // namespace loom::core::evaluate
