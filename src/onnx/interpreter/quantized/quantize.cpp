// Numbers to whole ones of few bits, exact in its integers. The way back, which constants of
// networks take, is in onnx/operators/casts.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {
namespace {

struct Limits {
  double low, high;
};
Limits limits_of(OnnxType type) {
  switch (type) {
    case OnnxType::i8: return {-128, 127};
    case OnnxType::u8: return {0, 255};
    case OnnxType::i16: return {-32768, 32767};
    case OnnxType::u16: return {0, 65535};
    case OnnxType::i4: return {-8, 7};
    case OnnxType::u4: return {0, 15};
    case OnnxType::i2: return {-2, 1};
    case OnnxType::u2: return {0, 3};
    default: return {-2147483648.0, 2147483647.0};
  }
}

// The type to quantize to: that of the zero point, of output_dtype, or uint8.
Result<OnnxType> quantized_type(const Call& c) {
  const auto asked = static_cast<OnnxType>(c.integer("output_dtype", 0));
  if (c.has(2)) {
    if (asked != OnnxType::undefined && asked != c.value(2).type)
      return c.bad("output_dtype is not the type of the zero point");
    return c.value(2).type;
  }
  return asked == OnnxType::undefined ? OnnxType::u8 : asked;
}

// The nearest integer, ties to even, of |v| below 2^22: adding 1.5 x 2^23 rounds there.
float nearest(float v) {
  constexpr float kShift = 12582912.0F;
  return (v + kShift) - kShift;
}

// Quantizes a row of n values with one scale. Values are clamped before they are rounded. The
// limits are integers, so the result is the same.
using QuantizeRow = void (*)(const float* x, float scale, float zero, int64_t n, void* y);
template <class Q>
void quantize_row(const float* x, float scale, float zero, int64_t n, void* to) {
  auto* y = static_cast<Q*>(to);
  const float low = static_cast<float>(std::numeric_limits<Q>::min()) - zero;
  const float high = static_cast<float>(std::numeric_limits<Q>::max()) - zero;
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] / scale;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = static_cast<Q>(static_cast<int32_t>(nearest(v) + zero));
  }
}

// Whole numbers of 8 and 16 bits; null: another type.
QuantizeRow quantize_row_of(OnnxType type) {
  switch (type) {
    case OnnxType::i8: return quantize_row<int8_t>;
    case OnnxType::u8: return quantize_row<uint8_t>;
    case OnnxType::i16: return quantize_row<int16_t>;
    case OnnxType::u16: return quantize_row<uint16_t>;
    default: return nullptr;
  }
}

Status quantize(const Call& c) {
  LOOM_ASSIGN(const OnnxType to, quantized_type(c));
  LOOM_ASSIGN(const Casting how, casting_of(c));
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f32));
  LOOM_ASSIGN(const Value scale, c.as(1, OnnxType::f32));
  LOOM_ASSIGN(const ScalePlan plan, scale_plan(c, x, scale));
  Value zero;
  if (c.has(2)) {
    if (c.value(2).count() != scale.count()) return c.bad("a zero point per scale is needed");
    LOOM_ASSIGN(zero, c.as(2, OnnxType::f64));
  }
  const SideBySide walk(plan.dims, {steps_of(plan.dims), plan.steps});
  if (const QuantizeRow row = quantize_row_of(to); row != nullptr) {
    LOOM_ASSIGN(Value small, c.make(to, x.dims));
    const int size = element_bytes(to);
    walk.run_all(c, 1, [&](const auto& offsets, int64_t n, const auto& step) {
      const int64_t run = step[1] == 0 ? n : 1;  // values of one scale
      for (int64_t i = 0; i < n; i += run) {
        const int64_t at = offsets[0] + i * step[0], s = offsets[1] + i * step[1];
        const float z = c.has(2) ? static_cast<float>(zero.data<double>()[s]) : 0;
        row(x.data<float>() + at, scale.data<float>()[s], z, run,
            small.data<std::byte>() + at * size);
      }
    });
    return c.give(std::move(small));
  }
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, x.dims));
  const bool real = is_real(to);
  const Limits limits = limits_of(to);
  walk.run_all(c, 4, [&](const auto& offsets, int64_t n, const auto& step) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = offsets[0] + i * step[0], s = offsets[1] + i * step[1];
      const float units = x.data<float>()[at] / scale.data<float>()[s];
      double v = static_cast<double>(units);
      const double z = c.has(2) ? zero.data<double>()[s] : 0;
      if (!real) v = std::clamp(std::nearbyint(v) + z, limits.low, limits.high);
      y.data<double>()[at] = real ? v + z : v;
    }
  });
  LOOM_ASSIGN(Value out, cast(c.rt.memory, y, to, how));
  return c.give(std::move(out));
}

// y, scale and zero point of one tensor, as uint8.
Status dynamic_quantize(const Call& c) {
  if (c.value(0).type != OnnxType::f32) return c.bad("takes float");
  const Value& x = c.value(0);
  const int64_t n = x.count();
  float low = 0, high = 0;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, x.data<float>()[i]);
    high = std::max(high, x.data<float>()[i]);
  }
  LOOM_ASSIGN(Value y, c.make(OnnxType::u8, x.dims));
  LOOM_ASSIGN(Value scale, c.make(OnnxType::f32, {}));
  LOOM_ASSIGN(Value zero, c.make(OnnxType::u8, {}));
  const float step = (high - low) / 255.0F;
  *scale.data<float>() = step;
  const float origin = step == 0 ? 0 : std::nearbyint(std::clamp(0 - low / step, 0.0F, 255.0F));
  *zero.data<uint8_t>() = static_cast<uint8_t>(origin);
  for (int64_t i = 0; i < n; ++i) {
    const float v = step == 0 ? 0 : std::nearbyint(x.data<float>()[i] / step);
    y.data<uint8_t>()[i] = static_cast<uint8_t>(std::clamp(v + origin, 0.0F, 255.0F));
  }
  LOOM_TRY(c.give(std::move(y), 0));
  LOOM_TRY(c.give(std::move(scale), 1));
  return c.give(std::move(zero), 2);
}

constexpr Operator kQuantize[] = {
    {"", "QuantizeLinear", quantize, "aa?a axis block_size output_dtype precision saturate"},
    {"", "DynamicQuantizeLinear", dynamic_quantize, "a"},
};

}  // namespace

std::span<const Operator> quantize_operators() {
  return kQuantize;
}

}  // namespace loom::core::evaluate
