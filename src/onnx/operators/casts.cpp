// Other types for the same numbers: Cast and its kin, and linear quantization, exact in its
// integers. See elementwise.hpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/operators/elementwise.hpp"

namespace loom::core::evaluate {

// 2^bits of a whole type, in which one bit is the sign of a signed one.
Status fits_whole_type(const Call& c, const Value& numbers, OnnxType to) {
  const int bits = onnx_type_bits(to) - (is_signed(to) ? 1 : 0);
  const double high = std::ldexp(1.0, bits), low = is_signed(to) ? -high : 0.0;
  const double* v = numbers.data<double>();
  for (int64_t i = 0, n = numbers.count(); i < n; ++i) {
    // What is cut towards 0 fits: -128.9 is -128.
    if (!(v[i] > low - 1 && v[i] < high))
      return c.bad(cat("makes ", onnx_type_name(to), " of a number that it cannot hold"));
  }
  return {};
}

namespace {

Result<Casting> casting_of(const Call& c) {
  Casting how;
  how.saturate = c.integer("saturate", 1) != 0;
  const std::string rounding = c.text("round_mode", "up");
  if (rounding == "down")
    how.rounding = RoundingUp::down;
  else if (rounding == "nearest")
    how.rounding = RoundingUp::nearest;
  else if (rounding != "up")
    return c.bad("round_mode must be up, down or nearest");
  return how;
}

Status cast_to(const Call& c, OnnxType to) {
  if (element_bytes(to) == 0) return c.not_done(cat("values of type ", static_cast<int32_t>(to)));
  LOOM_ASSIGN(const Casting how, casting_of(c));
  LOOM_ASSIGN(Value y, cast(c.rt.memory, c.value(0), to, how));
  return c.give(std::move(y));
}
Status cast_operator(const Call& c) {
  return cast_to(c, static_cast<OnnxType>(c.integer("to", 0)));
}
// Floats beyond a whole type.
Status cast_defined(const Call& c) {
  const auto to = static_cast<OnnxType>(c.integer("to", 0));
  if (!is_whole(to) || !is_real(c.value(0).type)) return {};
  LOOM_ASSIGN(const Value numbers, c.as(0, OnnxType::f64));
  return fits_whole_type(c, numbers, to);
}
Status cast_like(const Call& c) {
  return cast_to(c, c.value(1).type);
}

Status bit_cast(const Call& c) {
  const auto to = static_cast<OnnxType>(c.integer("to", 0));
  const int from_bits = onnx_type_bits(c.value(0).type), to_bits = onnx_type_bits(to);
  if (to_bits == 0 || from_bits != to_bits || to_bits < 8)
    return c.not_done("bits of types of other sizes, or below 8");
  return c.give(c.value(0).seen_as(to));
}

// Where the scale of each element is: steps into scale (and zero point) over the axes of x. With
// blocks the axis is cut first: `dims` then has one axis more.
struct ScalePlan {
  Dims dims, steps;
};
Result<ScalePlan> scale_plan(const Call& c, const Value& x, const Value& scale) {
  ScalePlan p{x.dims, Dims(x.dims.size(), 0)};
  const int64_t block = c.integer("block_size", 0);
  if (scale.count() == 1 && block == 0) return p;
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 1), x.rank()));
  const auto a = static_cast<size_t>(axis);
  if (block == 0) {
    if (scale.rank() != 1 || scale.dims[0] != x.dims[a])
      return c.bad("a scale that does not fit its axis");
    p.steps[a] = 1;
    return p;
  }
  Dims want = x.dims;
  want[a] = block > 0 ? (x.dims[a] + block - 1) / block : -1;
  if (scale.dims != want || x.dims[a] % block != 0)
    return c.bad("scales of blocks that do not fit the input");
  p.steps = steps_of(scale.dims);
  p.dims[a] = scale.dims[a];
  p.dims.insert(p.dims.begin() + axis + 1, block);
  p.steps.insert(p.steps.begin() + axis + 1, 0);
  return p;
}

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

// Calls f with a value of the C++ type of whole numbers of 8 and 16 bits; false for other types.
template <class F>
bool with_small(OnnxType type, F f) {
  switch (type) {
    case OnnxType::i8: f(int8_t{}); return true;
    case OnnxType::u8: f(uint8_t{}); return true;
    case OnnxType::i16: f(int16_t{}); return true;
    case OnnxType::u16: f(uint16_t{}); return true;
    default: return false;
  }
}

// The nearest whole number, ties to even, of |v| below 2^22: adding 1.5 x 2^23 rounds there.
float nearest(float v) {
  constexpr float kShift = 12582912.0F;
  return (v + kShift) - kShift;
}

// A row of n values to whole numbers with one scale. What is rounded is clamped before, to limits
// that are whole numbers, which gives the same.
template <class Q>
void quantize_row(const float* x, float scale, float zero, int64_t n, Q* y) {
  const float low = static_cast<float>(std::numeric_limits<Q>::min()) - zero;
  const float high = static_cast<float>(std::numeric_limits<Q>::max()) - zero;
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i] / scale;
    v = v > low ? v : low;
    v = v < high ? v : high;
    y[i] = static_cast<Q>(static_cast<int32_t>(nearest(v) + zero));
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
  const SideBySide<2> walk(plan.dims, {steps_of(plan.dims), plan.steps});
  LOOM_ASSIGN(Value small, c.make(to, x.dims));
  const bool done = with_small(to, [&]<class Q>(Q) {
    walk.run_all(c, 1, [&](const auto& place, int64_t n, const auto& step) {
      const int64_t run = step[1] == 0 ? n : 1;  // values of one scale
      for (int64_t i = 0; i < n; i += run) {
        const int64_t at = place[0] + i * step[0], s = place[1] + i * step[1];
        const float z = c.has(2) ? static_cast<float>(zero.data<double>()[s]) : 0;
        quantize_row(x.data<float>() + at, scale.data<float>()[s], z, run, small.data<Q>() + at);
      }
    });
  });
  if (done) return c.give(std::move(small));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, x.dims));
  const bool real = is_real(to);
  const Limits limits = limits_of(to);
  walk.run_all(c, 4, [&](const auto& place, int64_t n, const auto& step) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = place[0] + i * step[0], s = place[1] + i * step[1];
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

Status dequantize(const Call& c) {
  LOOM_ASSIGN(const Value scale, c.as(1, OnnxType::f32));
  LOOM_ASSIGN(const ScalePlan plan, scale_plan(c, c.value(0), scale));
  Value zero;
  if (c.has(2)) {
    if (c.value(2).count() != scale.count()) return c.bad("a zero point per scale is needed");
    LOOM_ASSIGN(zero, c.as(2, OnnxType::f64));
  }
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, c.value(0).dims));
  const SideBySide<2> walk(plan.dims, {steps_of(plan.dims), plan.steps});
  // x - z is exact in a float where both have 16 bits at most.
  const auto rows = [&]<class Q, class R>(const Q* x, R) {
    walk.run_all(c, 1, [&](const auto& place, int64_t n, const auto& step) {
      const int64_t run = step[1] == 0 ? n : 1;
      for (int64_t i = 0; i < n; i += run) {
        const int64_t at = place[0] + i * step[0], s = place[1] + i * step[1];
        const R z = c.has(2) ? static_cast<R>(zero.data<double>()[s]) : R{};
        const float by = scale.data<float>()[s];
        float* to = y.data<float>() + at;
        const Q* from = x + at;
        for (int64_t k = 0; k < run; ++k)
          to[k] = static_cast<float>(static_cast<R>(from[k]) - z) * by;
      }
    });
  };
  const bool done =
      with_small(c.value(0).type, [&]<class Q>(Q) { rows(c.value(0).data<Q>(), float{}); });
  if (!done) {
    LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
    rows(x.data<double>(), double{});
  }
  const auto asked = static_cast<OnnxType>(c.integer("output_dtype", 0));
  return c.give_as(y, asked == OnnxType::undefined ? c.value(1).type : asked);
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

constexpr Operator kCasts[] = {
    {"", "Cast", cast_operator, 1, 1, "to saturate round_mode",
     Operator::folds | Operator::pointwise, nullptr, nullptr, cast_defined},
    {"", "CastLike", cast_like, 2, 2, "saturate round_mode"},
    {"", "BitCast", bit_cast, 1, 1, "to"},
    {"", "QuantizeLinear", quantize, 2, 3, "axis block_size output_dtype precision saturate"},
    {"", "DequantizeLinear", dequantize, 2, 3, "axis block_size output_dtype"},
    {"", "DynamicQuantizeLinear", dynamic_quantize, 1, 1, ""},
};

}  // namespace

std::span<const Operator> cast_operators() {
  return kCasts;
}

}  // namespace loom::core::evaluate
