// Index arithmetic of convolutions: positions and taps of up to three axes as single numbers, the
// last axis fastest.
#pragma once

#include "ops/args.hpp"

namespace loom::core::reference {

// A number split into the indices of its three axes.
struct Axes {
  int64_t at[3];
};
inline Axes axes_of(int64_t index, const int64_t (&extent)[3]) {
  return {{index / (extent[1] * extent[2]), index / extent[2] % extent[1], index % extent[2]}};
}

// The input position that tap `tap` of output position `out` reads; -1 outside the input.
inline int64_t input_position(const ConvShape& s, int64_t out, int64_t tap) {
  const Axes o = axes_of(out, s.out), k = axes_of(tap, s.kernel);
  int64_t position = 0;
  for (int a = 0; a < 3; ++a) {
    const int64_t i = o.at[a] * s.stride[a] + k.at[a] * s.dilation[a] - s.pad[a];
    if (i < 0 || i >= s.in[a]) return -1;
    position = position * s.in[a] + i;
  }
  return position;
}

// The output position whose tap `tap` reads input position `in`; -1 if there is none.
inline int64_t output_position(const ConvShape& s, int64_t in, int64_t tap) {
  const Axes i = axes_of(in, s.in), k = axes_of(tap, s.kernel);
  int64_t position = 0;
  for (int a = 0; a < 3; ++a) {
    const int64_t from = i.at[a] + s.pad[a] - k.at[a] * s.dilation[a];
    if (from < 0 || from % s.stride[a] != 0 || from / s.stride[a] >= s.out[a]) return -1;
    position = position * s.out[a] + from / s.stride[a];
  }
  return position;
}

// One axis of a patch: which channel of its group, and which tap.
struct PatchTerm {
  int64_t channel, tap;
};
inline PatchTerm patch_term(const ConvShape& s, int64_t k) {
  return {k / s.taps(), k % s.taps()};
}

}  // namespace loom::core::reference
