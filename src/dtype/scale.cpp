// Scale rules of spec/core.md 4.2. Infinities and NaN never widen a range: they are clamped, or
// become 0, when encoded. Steps are rounded here to the width in which they are stored, so that
// simulate() sees what a kernel sees.
#include "dtype/scale.hpp"

#include "dtype/elements.hpp"

namespace loom {
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

// The largest value whose code a row-scaled type has.
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

// Weights that are -g, 0 and g stay what they are when their scale is g.
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

// d of a GGUF block. Beyond f16 we saturate where GGUF would store an infinity.
BlockScale gguf_scale(float d) {
  BlockScale b;
  uint16_t h = f16_from_f32(d);
  if ((h & 0x7fffu) == 0x7c00u) --h;
  b.stored = h;
  b.scale.step = static_cast<double>(f32_from_f16(h));
  b.scale.inv = d != 0 ? static_cast<double>(1.0f / d) : 0.0;
  return b;
}

BlockScale q4_0_scale(const float* x, int n) {
  float amax = 0, extreme = 0;
  for (int i = 0; i < n; ++i) {
    const float a = finite_abs(x[i]);
    if (amax < a) {
      amax = a;
      extreme = x[i];
    }
  }
  return gguf_scale(extreme / -8.0f);
}

// OCP MX: exponent of the largest element less the exponent of 6. No element: a scale of one.
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

TensorRange held_range(const DTypeInfo& info, const TensorRange& range, float* held, float band) {
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
    case ScaleRule::f16:
      return info.bits == 4 ? q4_0_scale(x, n) : gguf_scale(amax_of(x, n) / 127.0f);
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
  // One block: only its largest value matters, with its sign.
  float extreme = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float v = values[i * stride];
    if (finite_abs(v) > finite_abs(extreme)) extreme = v;
  }
  return block_scale(info, &extreme, 1, nvfp4_tensor_scale(finite_abs(extreme))).scale;
}

}  // namespace loom
