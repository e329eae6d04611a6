// Scale rules of spec/core.md 4.2. Infinities and NaN never widen a range: encoding clamps them or
// turns them into 0. Steps are rounded here to their stored width, so that simulate() gets the same
// step as a kernel.
#include "dtype/scale.hpp"

#include "dtype/codecs/super_block.hpp"

namespace loom::core {
namespace {

constexpr float kMaxFloat = 0x1.fffffep127f;

float finite_abs(float x) {
  const float a = x < 0 ? -x : x;
  return a <= kMaxFloat ? a : 0.0f;  // also false for NaN
}

float amax_of(const float* x, int n) {
  float amax = 0;
  for (int i = 0; i < n; ++i) {
    const float a = finite_abs(x[i]);
    amax = a > amax ? a : amax;
  }
  return amax;
}

// The largest value with a code in a row-scaled type.
double max_value(const DTypeInfo& info) {
  switch (info.dtype) {
    case DType::f8e4m3: return 448;
    case DType::f8e5m2: return 57344;
    case DType::f4: return 6;
    case DType::e3m0: return 16;
    default: return int_range(info).hi;
  }
}

// The step after its round trip through the row-scale section, which holds step * level_unit.
double stored_step(const DTypeInfo& info, double step) {
  if (info.compute == ComputeType::f64) return step;
  const double unit = info.level_unit;
  return static_cast<double>(static_cast<float>(step * unit)) / unit;
}

// Weights that are -g, 0 and g are exact if their scale is g.
double mean_of(const DTypeInfo& info, const TensorRange& range) {
  const bool on_grid = info.scale == ScaleRule::absmean && range.grid != 0;
  return on_grid ? static_cast<double>(range.grid) : range.mean_abs;
}

Scale affine_scale(const DTypeInfo& info, const TensorRange& range) {
  const double top = int_range(info).hi;
  const double min = range.min, max = range.max;
  Scale s;
  s.step = stored_step(info, (max - min) / top);
  const double zero = s.step == 0 ? 0 : round_half_even(-min / s.step);
  s.zero = zero > top ? top : zero;
  return s;
}

// Past the range of f16 we saturate; GGUF would store an infinity.
uint16_t gguf_f16(float x) {
  const uint16_t h = f16_from_f32(x);
  return (h & 0x7fffu) == 0x7c00u ? static_cast<uint16_t>(h - 1) : h;
}

// d of a GGUF block.
BlockScale gguf_scale(float d) {
  BlockScale b;
  const uint16_t h = gguf_f16(d);
  b.stored = h;
  b.scale.step = static_cast<double>(f32_from_f16(h));
  b.scale.inv = d != 0 ? static_cast<double>(1.0f / d) : 0.0;
  return b;
}

// q4_0 and q5_0: the value of the largest magnitude becomes the lowest level.
BlockScale q4_0_scale(const DTypeInfo& info, const float* x, int n) {
  float amax = 0, extreme = 0;
  for (int i = 0; i < n; ++i) {
    const float a = finite_abs(x[i]);
    if (amax < a) {
      amax = a;
      extreme = x[i];
    }
  }
  return gguf_scale(extreme / -static_cast<float>(info.code_bias));
}

// The ends of the finite values; zeros if there are none.
struct Ends {
  float min = 0, max = 0;
};
Ends ends_of(const float* x, int n) {
  Ends e;
  bool any = false;
  for (int i = 0; i < n; ++i) {
    if (!(x[i] - x[i] == 0)) continue;
    e.min = !any || x[i] < e.min ? x[i] : e.min;
    e.max = !any || x[i] > e.max ? x[i] : e.max;
    any = true;
  }
  return e;
}

// q4_1 and q5_1: codes count from the smallest value.
BlockScale q4_1_scale(const DTypeInfo& info, const float* x, int n) {
  const Ends e = ends_of(x, n);
  BlockScale b = gguf_scale((e.max - e.min) / static_cast<float>(int_range(info).hi));
  b.zero = gguf_f16(e.min);
  b.scale.offset = static_cast<double>(f32_from_f16(static_cast<uint16_t>(b.zero)));
  b.scale.origin = static_cast<double>(e.min);
  return b;
}

// A zero point that is a code: 0 stays exact.
BlockScale zero_point_scale(const DTypeInfo& info, const float* x, int n) {
  const Ends e = ends_of(x, n);
  const double min = e.min < 0 ? e.min : 0, max = e.max > 0 ? e.max : 0;
  const IntRange range = int_range(info);
  BlockScale b = gguf_scale(static_cast<float>((max - min) / range.hi));
  b.scale.inv = 0;
  b.scale.zero = b.scale.step == 0 ? 0 : small_integer_code(-min / b.scale.step, 0, range);
  b.zero = static_cast<uint32_t>(b.scale.zero);
  return b;
}

BlockScale f16_scale(const DTypeInfo& info, const float* x, int n) {
  if (info.zero == ZeroRule::f16) return q4_1_scale(info, x, n);
  if (info.zero == ZeroRule::code) return zero_point_scale(info, x, n);
  return info.bits < 8 ? q4_0_scale(info, x, n) : gguf_scale(amax_of(x, n) / 127.0f);
}

// OCP MX: exponent of the largest element minus the exponent of 6. No element gives a scale of one.
BlockScale mxfp4_scale(double amax) {
  BlockScale b;
  const int e = amax == 0 ? 0 : exponent_of(amax) - 2;
  const int stored = e < -127 ? -127 : e;
  b.stored = static_cast<uint32_t>(stored + 127);
  b.scale.step = pow2(stored);
  return b;
}

BlockScale nvfp4_scale(double amax, float tensor_scale) {
  BlockScale b;
  const double tensor_step = 2.0 * static_cast<double>(tensor_scale);
  b.stored = tensor_step == 0 ? 0 : e4m3_code(amax / 6.0 / tensor_step, true);
  const float unit_step = f32_from_e4m3(static_cast<uint8_t>(b.stored)) * tensor_scale;
  b.scale.step = 2.0 * static_cast<double>(unit_step);
  return b;
}

template <class S>
TensorRange rounded_range(const S* values, int64_t n, int64_t stride) {
  TensorRange r;
  int64_t count = 0;
  double sum = 0;
  bool on_grid = true;
  for (int64_t i = 0; i < n; ++i) {
    const float v = static_cast<float>(values[i * stride]);
    const float a = v < 0 ? -v : v;
    if (!(a <= kMaxFloat)) continue;
    r.min = v < r.min ? v : r.min;
    r.max = v > r.max ? v : r.max;
    sum += static_cast<double>(a);
    ++count;
    if (a != 0 && a != r.grid) {
      on_grid = on_grid && r.grid == 0;
      r.grid = a;
    }
  }
  r.mean_abs = count > 0 ? sum / static_cast<double>(count) : 0.0;
  if (!on_grid) r.grid = 0;
  return r;
}

}  // namespace

TensorRange range_of(const float* values, int64_t n, int64_t stride) {
  return rounded_range(values, n, stride);
}
TensorRange range_of(const double* values, int64_t n, int64_t stride) {
  return rounded_range(values, n, stride);
}

TensorRange tensor_range(const float* values, int64_t count) {
  return range_of(values, count, 1);
}
TensorRange tensor_range(const double* values, int64_t count) {
  return range_of(values, count, 1);
}

Scale range_scale(const DTypeInfo& info, const TensorRange& range) {
  Scale s;
  switch (info.scale) {
    case ScaleRule::row: s.step = stored_step(info, amax_of(range) / max_value(info)); break;
    case ScaleRule::affine: return affine_scale(info, range);
    case ScaleRule::absmean:
    case ScaleRule::meanabs: s.step = stored_step(info, mean_of(info, range)); break;
    default: break;
  }
  return s;
}

IntRange small_scale_range(const DTypeInfo& info) {
  switch (info.scale) {
    case ScaleRule::u4: return {0, 15};
    case ScaleRule::u6: return {0, 63};
    case ScaleRule::i6: return {-32, 31};
    default: return {-128, 127};
  }
}

TensorRange frozen_range(const DTypeInfo& info, const TensorRange& range, float* held, float band) {
  const double least = 1.0 - static_cast<double>(band);
  TensorRange kept;
  if (info.affine()) {
    const double width = static_cast<double>(held[1]) - static_cast<double>(held[0]);
    const double now = static_cast<double>(range.max) - static_cast<double>(range.min);
    kept.min = held[0], kept.max = held[1];
    if (range.min >= held[0] && range.max <= held[1] && now >= least * width) return kept;
    held[0] = range.min, held[1] = range.max;
    return range;
  }
  const bool largest = info.scale == ScaleRule::row;
  const auto now = static_cast<float>(largest ? amax_of(range) : mean_of(info, range));
  kept.max = held[0], kept.mean_abs = static_cast<double>(held[0]);
  if (now <= held[0] && static_cast<double>(now) >= least * kept.mean_abs) return kept;
  held[0] = now;
  return range;
}

float nvfp4_tensor_scale(double amax) {
  return static_cast<float>(amax / (448.0 * 6.0) * 0.5);
}

BlockScale block_scale(const DTypeInfo& info, const float* x, int n, float tensor_scale) {
  switch (info.scale) {
    case ScaleRule::f16: return f16_scale(info, x, n);
    case ScaleRule::e8m0: return mxfp4_scale(amax_of(x, n));
    case ScaleRule::e4m3: return nvfp4_scale(amax_of(x, n), tensor_scale);
    default: break;
  }
  BlockScale b;
  const float amax = amax_of(x, n);
  b.stored = f32_bits(amax);
  b.scale.step = static_cast<double>(amax);
  return b;
}

Scale choose_scale(DType dtype, const float* values, int64_t n, int64_t stride) {
  const DTypeInfo& info = dtype_info(dtype);
  if (info.block == 0) return range_scale(info, range_of(values, n, stride));
  if (info.super_block > 0 || info.zero != ZeroRule::none) {
    float dense[kMaxBlockValues];
    const int count = static_cast<int>(n < info.block ? n : info.block);
    for (int i = 0; i < count; ++i) dense[i] = values[i * stride];
    if (info.super_block == 0) return block_scale(info, dense, count, 0.0f).scale;
    BlockFields fields;
    quantize_super_block(info, dense, count, fields);
    return super_scale(info, fields, 0);
  }
  // One block: only its largest value matters, with its sign.
  float extreme = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float v = values[i * stride];
    if (finite_abs(v) > finite_abs(extreme)) extreme = v;
  }
  return block_scale(info, &extreme, 1, nvfp4_tensor_scale(finite_abs(extreme))).scale;
}

}  // namespace loom::core
