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
    // Values are cut towards 0 before the check: -128.9 is -128.
    if (!(v[i] > low - 1 && v[i] < high))
      return c.bad(cat("makes ", onnx_type_name(to), " of a number that it cannot hold"));
  }
  return {};
}

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

namespace {

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
  return c.give(c.value(0).view_as(to));
}

// A row of n values of one scale. x - z is exact in a float where both have 16 bits at most.
using DequantizeRow = void (*)(const void* x, float scale, double zero, int64_t n, float* y);
template <class Q, class R>
void dequantize_row(const void* x, float scale, double zero, int64_t n, float* y) {
  const auto* from = static_cast<const Q*>(x);
  const R z = static_cast<R>(zero);
  for (int64_t k = 0; k < n; ++k) y[k] = static_cast<float>(static_cast<R>(from[k]) - z) * scale;
}
DequantizeRow dequantize_row_of(OnnxType type) {
  switch (type) {
    case OnnxType::i8: return dequantize_row<int8_t, float>;
    case OnnxType::u8: return dequantize_row<uint8_t, float>;
    case OnnxType::i16: return dequantize_row<int16_t, float>;
    case OnnxType::u16: return dequantize_row<uint16_t, float>;
    default: return nullptr;
  }
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
  const SideBySide walk(plan.dims, {steps_of(plan.dims), plan.steps});
  Value x = c.value(0);
  DequantizeRow row = dequantize_row_of(x.type);
  if (row == nullptr) {
    LOOM_ASSIGN(x, c.as(0, OnnxType::f64));
    row = dequantize_row<double, double>;
  }
  const int size = element_bytes(x.type);
  walk.run_all(c, 1, [&](const auto& offsets, int64_t n, const auto& step) {
    const int64_t run = step[1] == 0 ? n : 1;
    for (int64_t i = 0; i < n; i += run) {
      const int64_t at = offsets[0] + i * step[0], s = offsets[1] + i * step[1];
      row(x.data<std::byte>() + at * size, scale.data<float>()[s],
          c.has(2) ? zero.data<double>()[s] : 0, run, y.data<float>() + at);
    }
  });
  const auto asked = static_cast<OnnxType>(c.integer("output_dtype", 0));
  return c.give_as(y, asked == OnnxType::undefined ? c.value(1).type : asked);
}

constexpr Operator kCasts[] = {
    {"", "Cast", cast_operator, "a>c to:i!|19 a>c to:i! saturate:g round_mode", "cast",
     Operator::folds | Operator::pointwise, nullptr, nullptr, cast_defined},
    {"", "CastLike", cast_like, "15 aA>A|19 aA>A saturate:g round_mode", "cast_like"},
    {"", "BitCast", bit_cast, "a to"},
    {"", "DequantizeLinear", dequantize, "aa?a axis block_size output_dtype"},
};

}  // namespace

std::span<const Operator> cast_operators() {
  return kCasts;
}

}  // namespace loom::core::evaluate
