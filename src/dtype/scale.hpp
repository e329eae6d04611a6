// Scale rules, private to the room: the scale of a row or tensor from its range, and of a block
// from its values. Includes the stored form of each. Only finite values count, and a range of zeros
// gives a step of 0.
#pragma once

#include "dtype/codecs/codec.hpp"
#include "dtype/elements.hpp"
#include "dtype/r16/r16.hpp"

namespace loom::core {

// Range of n values `stride` apart. Only finite values count; min <= 0 <= max.
TensorRange range_of(const float* values, int64_t n, int64_t stride);
TensorRange range_of(const double* values, int64_t n, int64_t stride);  // of them rounded to f32

// The small integers that are scales of blocks of u4, u6, i6 and i8.
IntRange small_scale_range(const DTypeInfo& info);

inline double amax_of(const TensorRange& range) {
  return range.max > -range.min ? range.max : -range.min;
}

// Rules row, affine, absmean, meanabs; {1, 0} for the others. A range of zeros gives step 0.
Scale range_scale(const DTypeInfo& info, const TensorRange& range);

// The range from which a scale is computed if `held` has room for r16_frozen_values() numbers (see
// FrozenRanges): the held range, or `range`, which then becomes the held one.
TensorRange frozen_range(const DTypeInfo& info, const TensorRange& range, float* held, float band);

// Scale in the row-scale section of nvfp4: level_unit * amax / (448 * 6).
float nvfp4_tensor_scale(double amax);

// Rules f16, e8m0, e4m3, absmax64, with the zeros of the block. `stored` is the f16, the byte or
// the bits of the f32; `zero` is the code or the f16. No values give the same as zeros.
struct BlockScale {
  Scale scale;
  uint32_t stored = 0, zero = 0;
};
BlockScale block_scale(const DTypeInfo& info, const float* x, int n, float tensor_scale);

}  // namespace loom::core
