// The geometry of pooling windows, for the check, the gradient and the bodies of the op.
#pragma once

#include "base/inline.hpp"
#include "ops/args/layers.hpp"

namespace loom::core {

// The taps of one window along an axis that are inside of the input: positions first + i * step for
// i < count. The first of them is tap `skipped` of the whole window.
struct PoolSpan {
  int64_t first = 0, count = 0, step = 1, skipped = 0;
  int64_t counted = 0;  // taps that an average with include_pad divides by
};

template <class Args>
LOOM_INLINE PoolSpan pool_span(const Args& args, int axis, int64_t out) {
  const ConvShape& s = args.shape;
  const int64_t in = s.in[axis];
  if (args.windows == PoolWindows::adaptive) {
    const int64_t first = out * in / s.out[axis];
    const int64_t end = ((out + 1) * in + s.out[axis] - 1) / s.out[axis];
    return {first, end - first, 1, 0, end - first};
  }
  const int64_t dilation = s.dilation[axis];
  const int64_t start = out * s.stride[axis] - s.pad[axis];
  // Taps below a position.
  const auto below = [&](int64_t position) {
    const int64_t room = position - start;
    const int64_t taps = room <= 0 ? 0 : (room + dilation - 1) / dilation;
    return taps < s.kernel[axis] ? taps : s.kernel[axis];
  };
  const int64_t skipped = below(0), inside = below(in);
  const int64_t end = inside > skipped ? inside : skipped;
  return {start + skipped * dilation, end - skipped, dilation, skipped,
          below(in + args.pad_end[axis])};
}

// The divisor of an average over the window.
template <class Args>
LOOM_INLINE int64_t pool_divisor(const Args& args, const PoolSpan (&spans)[3]) {
  int64_t n = 1;
  for (const PoolSpan& span : spans) n *= args.include_pad ? span.counted : span.count;
  return n;
}

}  // namespace loom::core
