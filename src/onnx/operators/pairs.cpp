// Functions of two values and more, with broadcasting: arithmetic, comparisons, logic, bits,
// choice. Whole numbers wrap; their division cuts towards 0, and by 0 gives 0. See elementwise.hpp.
#include <algorithm>
#include <cmath>

#include "base/dmath.hpp"
#include "onnx/operators/elementwise.hpp"
#include "onnx/operators/functions.hpp"

namespace loom::core::evaluate {

Result<Dims> shape_of_both(const Call& c, const Dims& a, const Dims& b) {
  Dims out = a;
  if (!broadcast(out, b)) return c.bad("shapes that do not fit");
  return out;
}

namespace {

template <class T>
T quotient(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a / b;
  } else if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(uint64_t{} - static_cast<uint64_t>(a));
    return b == 0 ? 0 : a / b;
  } else {
    return b == 0 ? 0 : a / b;
  }
}

// The sign of the divisor, as in Python; or of the dividend, as in C.
template <class T>
T remainder_of(T a, T b, bool of_dividend) {
  if constexpr (std::is_floating_point_v<T>) {
    const T r = std::fmod(a, b);
    return !of_dividend && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  } else {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1))) return 0;
    const T r = a % b;
    return !of_dividend && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
}

// Sums of whole numbers wrap.
template <class T, class F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_floating_point_v<T>)
    return f(a, b);
  else
    return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

template <class T>
void combine_as(const Call& c, Pair op, const Value& a, const Value& b, Value& y) {
  const auto all = [&](auto f) { map_pairs<T, T>(c, a, b, y, f); };
  switch (op) {
    case Pair::add:
      return all([](T u, T v) { return wrapping(u, v, [](auto p, auto q) { return p + q; }); });
    case Pair::sub:
      return all([](T u, T v) { return wrapping(u, v, [](auto p, auto q) { return p - q; }); });
    case Pair::mul:
      return all([](T u, T v) { return wrapping(u, v, [](auto p, auto q) { return p * q; }); });
    case Pair::div: return all([](T u, T v) { return quotient(u, v); });
    case Pair::mod: return all([](T u, T v) { return remainder_of(u, v, false); });
    case Pair::remainder: return all([](T u, T v) { return remainder_of(u, v, true); });
    case Pair::max: return all([](T u, T v) { return u > v || u != u ? u : v; });
    case Pair::min: return all([](T u, T v) { return u < v || u != u ? u : v; });
  }
}

}  // namespace

Result<Value> combine(const Call& c, Pair op, const Value& a, const Value& b) {
  LOOM_ASSIGN(Dims dims, shape_of_both(c, a.dims, b.dims));
  LOOM_ASSIGN(Value y, c.make(a.type, std::move(dims)));
  with_type(a.type, [&]<class T>(T) { combine_as<T>(c, op, a, b, y); });
  return y;
}

namespace {

// Before opset 7 the second input was broadcast along `axis` of the first.
Result<Value> second_input(const Call& c, const Value& a, Value b) {
  if (!c.given("axis") || c.opset >= 7) return b;
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), a.rank()));
  Dims dims = b.dims;
  while (static_cast<int>(dims.size()) + axis < a.rank()) dims.push_back(1);
  return b.seen_as(dims);
}

template <Pair Op>
Status arithmetic(const Call& c) {
  if (c.value(0).type == OnnxType::boolean) return c.bad("takes numbers");
  LOOM_ASSIGN(Value sum, c.widened(0));
  for (size_t i = 1; i < c.in.size(); ++i) {
    LOOM_TRY(c.same_type(0, i));
    LOOM_ASSIGN(Value next, c.widened(i));
    LOOM_ASSIGN(next, second_input(c, sum, next));
    LOOM_ASSIGN(sum, combine(c, Op, sum, next));
  }
  return c.give_as(sum, c.value(0).type);
}

// Whole numbers by 0.
Status quotient_defined(const Call& c) {
  if (is_real(c.value(1).type)) return {};
  LOOM_ASSIGN(const Value by, c.as(1, OnnxType::i64));
  const auto* p = by.data<int64_t>();
  return std::find(p, p + by.count(), 0) == p + by.count() ? Status{}
                                                           : c.bad("divides a whole number by 0");
}

Status modulo(const Call& c) {
  const bool of_dividend = c.integer("fmod", 0) != 0;
  return of_dividend ? arithmetic<Pair::remainder>(c) : arithmetic<Pair::mod>(c);
}

Status mean(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(Value sum, c.widened(0));
  for (size_t i = 1; i < c.in.size(); ++i) {
    LOOM_TRY(c.same_type(0, i));
    LOOM_ASSIGN(const Value next, c.widened(i));
    LOOM_ASSIGN(sum, combine(c, Pair::add, sum, next));
  }
  LOOM_ASSIGN(Value y, c.make(sum.type, sum.dims));
  with_real(sum.type, [&]<class T>(T) {
    for (int64_t i = 0, n = y.count(); i < n; ++i)
      y.data<T>()[i] = sum.data<T>()[i] / static_cast<T>(c.in.size());
  });
  return c.give_as(y, c.value(0).type);
}

int64_t integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
  uint64_t out = 1, square = static_cast<uint64_t>(base);
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) out *= square;
    square *= square;
  }
  return static_cast<int64_t>(out);
}

Status power(const Call& c) {
  const bool whole = !is_real(c.value(0).type) && !is_real(c.value(1).type);
  LOOM_ASSIGN(const Dims dims, shape_of_both(c, c.value(0).dims, c.value(1).dims));
  const OnnxType in = whole ? OnnxType::i64 : OnnxType::f64;
  if (!whole && c.value(0).type == OnnxType::f32 && c.value(1).count() == 1) {
    LOOM_ASSIGN(const double exponent, c.number(1, 1));
    if (exponent == 2) {
      LOOM_ASSIGN(const Value y, combine(c, Pair::mul, c.value(0), c.value(0)));
      return c.give(y.seen_as(dims));
    }
  }
  LOOM_ASSIGN(const Value a, c.as(0, in));
  LOOM_ASSIGN(const Value b, c.as(1, in));
  LOOM_ASSIGN(Value y, c.make(in, dims));
  if (whole)
    map_pairs<int64_t, int64_t>(c, a, b, y, integer_power);
  else
    map_pairs<double, double>(c, a, b, y, pow);
  return c.give_as(y, c.value(0).type);
}

// Powers of whole numbers that leave their type.
Status power_defined(const Call& c) {
  if (is_real(c.value(0).type)) return {};
  LOOM_ASSIGN(const Dims dims, shape_of_both(c, c.value(0).dims, c.value(1).dims));
  LOOM_ASSIGN(const Value a, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(const Value b, c.as(1, OnnxType::f64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, dims));
  map_pairs<double, double>(c, a, b, y, pow);
  return fits_whole_type(c, y, c.value(0).type);
}

template <class F>
Status comparison(const Call& c, F f) {
  LOOM_TRY(c.same_type(0, 1));
  LOOM_ASSIGN(const Value a, c.widened(0));
  LOOM_ASSIGN(Value b, c.widened(1));
  LOOM_ASSIGN(b, second_input(c, a, b));
  LOOM_ASSIGN(Dims dims, shape_of_both(c, a.dims, b.dims));
  LOOM_ASSIGN(Value y, c.make(OnnxType::boolean, std::move(dims)));
  with_type(a.type, [&]<class T>(T) {
    map_pairs<T, uint8_t>(c, a, b, y, [&](T u, T v) { return static_cast<uint8_t>(f(u, v)); });
  });
  return c.give(std::move(y));
}
Status equal(const Call& c) {
  return comparison(c, [](auto a, auto b) { return a == b; });
}
Status less(const Call& c) {
  return comparison(c, [](auto a, auto b) { return a < b; });
}
Status less_equal(const Call& c) {
  return comparison(c, [](auto a, auto b) { return a <= b; });
}
Status greater(const Call& c) {
  return comparison(c, [](auto a, auto b) { return a > b; });
}
Status greater_equal(const Call& c) {
  return comparison(c, [](auto a, auto b) { return a >= b; });
}

template <class F>
Status logic(const Call& c, F f) {
  if (c.value(0).type != OnnxType::boolean) return c.bad("takes bool");
  return comparison(c, [&](auto a, auto b) { return f(a != 0, b != 0); });
}
Status logical_and(const Call& c) {
  return logic(c, [](bool a, bool b) { return a && b; });
}
Status logical_or(const Call& c) {
  return logic(c, [](bool a, bool b) { return a || b; });
}
Status logical_xor(const Call& c) {
  return logic(c, [](bool a, bool b) { return a != b; });
}

template <class F>
Status bits_of(const Call& c, F f) {
  LOOM_TRY(c.same_type(0, 1));
  if (!is_whole(c.value(0).type)) return c.bad("takes whole numbers");
  LOOM_ASSIGN(const Value a, c.as(0, OnnxType::u64));
  LOOM_ASSIGN(const Value b, c.as(1, OnnxType::u64));
  LOOM_ASSIGN(Dims dims, shape_of_both(c, a.dims, b.dims));
  LOOM_ASSIGN(Value y, c.make(OnnxType::u64, std::move(dims)));
  map_pairs<uint64_t, uint64_t>(c, a, b, y, f);
  return c.give_as(y, c.value(0).type);
}
Status bitwise_and(const Call& c) {
  return bits_of(c, [](uint64_t a, uint64_t b) { return a & b; });
}
Status bitwise_or(const Call& c) {
  return bits_of(c, [](uint64_t a, uint64_t b) { return a | b; });
}
Status bitwise_xor(const Call& c) {
  return bits_of(c, [](uint64_t a, uint64_t b) { return a ^ b; });
}
Status bit_shift(const Call& c) {
  const std::string direction = c.text("direction", "");
  if (direction == "LEFT")
    return bits_of(c, [](uint64_t a, uint64_t b) { return b < 64 ? a << b : 0; });
  if (direction != "RIGHT") return c.bad("direction must be LEFT or RIGHT");
  if (is_signed(c.value(0).type))  // fills with the sign; a count below 0 is beyond the width
    return bits_of(c, [](uint64_t a, uint64_t b) {
      return static_cast<uint64_t>(static_cast<int64_t>(a) >> std::min<uint64_t>(b, 63));
    });
  return bits_of(c, [](uint64_t a, uint64_t b) { return b < 64 ? a >> b : 0; });
}

template <class T>
void choose(const Call& c, const Dims& dims, Value& y) {
  const SideBySide<4> walk(
      dims, {broadcast_steps(c.value(0).dims, dims), broadcast_steps(c.value(1).dims, dims),
             broadcast_steps(c.value(2).dims, dims), steps_of(dims)});
  walk.run_all(c, 1, [&](const auto& place, int64_t n, const auto& step) {
    const auto* which = c.value(0).data<uint8_t>() + place[0];
    const T* a = c.value(1).data<T>() + place[1];
    const T* b = c.value(2).data<T>() + place[2];
    T* out = y.data<T>() + place[3];
    for (int64_t i = 0; i < n; ++i)
      out[i] = which[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];
  });
}

Status where(const Call& c) {
  if (c.value(0).type != OnnxType::boolean) return c.bad("the condition must be bool");
  LOOM_TRY(c.same_type(1, 2));
  LOOM_ASSIGN(Dims dims, shape_of_both(c, c.value(0).dims, c.value(1).dims));
  LOOM_ASSIGN(dims, shape_of_both(c, dims, c.value(2).dims));
  LOOM_ASSIGN(Value y, c.make(c.value(1).type, dims));
  switch (element_bytes(y.type)) {
    case 1: choose<uint8_t>(c, dims, y); break;
    case 2: choose<uint16_t>(c, dims, y); break;
    case 4: choose<uint32_t>(c, dims, y); break;
    default: choose<uint64_t>(c, dims, y);
  }
  return c.give(std::move(y));
}

Status prelu(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(Value slope, c.widened(1));
  if (c.opset < 7 && x.rank() > 1 && slope.count() == x.dims[1]) {  // one per channel
    Dims by_channel(x.dims.size() - 1, 1);
    by_channel[0] = x.dims[1];
    slope = slope.seen_as(by_channel);
  }
  LOOM_ASSIGN(const Dims dims, shape_of_both(c, x.dims, slope.dims));
  if (dims != x.dims) return c.bad("a slope that does not fit its input");
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  with_type(x.type, [&]<class T>(T) {
    map_pairs<T, T>(c, x, slope, y, [](T v, T s) { return v < T{} ? v * s : v; });
  });
  return c.give_as(y, c.value(0).type);
}

constexpr std::string_view kOld = "axis broadcast consumed_inputs";
constexpr uint16_t kFolds = Operator::pointwise | Operator::folds;
constexpr uint16_t kFunction = kFolds | Operator::function;
constexpr Operator kPairs[] = {
    {"", "Add", arithmetic<Pair::add>, 2, 2, kOld, kFunction},
    {"", "Sub", arithmetic<Pair::sub>, 2, 2, kOld, kFunction},
    {"", "Mul", arithmetic<Pair::mul>, 2, 2, kOld, kFunction},
    {"", "Div", arithmetic<Pair::div>, 2, 2, kOld, kFunction, nullptr, nullptr, quotient_defined},
    {"", "Mod", modulo, 2, 2, "fmod"},
    {"", "Pow", power, 2, 2, kOld, kFunction, nullptr, nullptr, power_defined},
    {"", "Max", arithmetic<Pair::max>, 1, -1, "", kFunction},
    {"", "Min", arithmetic<Pair::min>, 1, -1, "", kFunction},
    {"", "Sum", arithmetic<Pair::add>, 1, -1, ""},
    {"", "Mean", mean, 1, -1, ""},
    {"", "Equal", equal, 2, 2, kOld, kFolds},
    {"", "Less", less, 2, 2, kOld, kFunction},
    {"", "LessOrEqual", less_equal, 2, 2, "", kFunction},
    {"", "Greater", greater, 2, 2, kOld, kFunction},
    {"", "GreaterOrEqual", greater_equal, 2, 2, "", kFunction},
    {"", "And", logical_and, 2, 2, kOld, kFolds},
    {"", "Or", logical_or, 2, 2, kOld, kFolds},
    {"", "Xor", logical_xor, 2, 2, kOld},
    {"", "BitwiseAnd", bitwise_and, 2, 2, ""},
    {"", "BitwiseOr", bitwise_or, 2, 2, ""},
    {"", "BitwiseXor", bitwise_xor, 2, 2, ""},
    {"", "BitShift", bit_shift, 2, 2, "direction"},
    {"", "Where", where, 3, 3, "", kFunction | Operator::moves},
    {"", "PRelu", prelu, 2, 2, ""},
};

}  // namespace

std::span<const Operator> pair_operators() {
  return kPairs;
}

}  // namespace loom::core::evaluate
