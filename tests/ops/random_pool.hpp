// Random poolings: one to three axes, any stride, padding and dilation, windows by stride or
// adaptive.
#pragma once

#include <algorithm>

#include "ops/random_copy.hpp"

namespace loom::core::test {

// The op without its tensors.
inline PoolArgs random_pool(uint64_t seed, int64_t max_extent) {
  Draws draw(seed);
  PoolArgs args;
  args.kind = static_cast<PoolKind>(draw.below(3));
  args.windows = draw.one_in(4) ? PoolWindows::adaptive : PoolWindows::strided;
  args.include_pad = draw.one_in(2);
  args.p = 1 + static_cast<int>(draw.below(2));
  ConvShape& s = args.shape;
  s.channels = s.filters = s.groups = 1 + draw.below(3);
  const int64_t axes = 1 + draw.below(3);
  for (int64_t a = 3 - axes; a < 3; ++a) {
    const int64_t largest = axes == 3 ? max_extent / 4 + 1 : a == 2 ? max_extent : max_extent / 2;
    s.in[a] = 1 + draw.below(largest);
    if (args.windows == PoolWindows::adaptive) {
      s.out[a] = 1 + draw.below(std::min<int64_t>(s.in[a] + 2, 9));
      continue;
    }
    s.kernel[a] = 1 + draw.below(draw.one_in(6) ? 20 : 4);
    s.dilation[a] = draw.one_in(4) ? 1 + draw.below(3) : 1;
    s.stride[a] = 1 + draw.below(3);
    const int64_t reach = (s.kernel[a] - 1) * s.dilation[a] + 1;
    s.pad[a] = draw.below(reach);
    args.pad_end[a] = draw.below(reach);
    const int64_t room = s.in[a] + s.pad[a] + args.pad_end[a] - reach;
    const int64_t up = draw.one_in(3) ? s.stride[a] - 1 : 0;
    s.out[a] = room < 0 ? 0 : (room + up) / s.stride[a] + 1;
  }
  return args;
}

// The gradient op of a pooling, without tensors.
inline PoolDxArgs gradient_of(const PoolArgs& args) {
  PoolDxArgs g;
  g.shape = args.shape;
  g.kind = args.kind;
  g.windows = args.windows;
  g.include_pad = args.include_pad;
  g.p = args.p;
  std::copy_n(args.pad_end, 3, g.pad_end);
  return g;
}

}  // namespace loom::core::test
