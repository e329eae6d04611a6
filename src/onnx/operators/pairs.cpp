// Functions of two values and more, with broadcasting: arithmetic, comparisons, logic, bits,
// choice. Whole numbers wrap; their division cuts towards 0, and by 0 gives 0. See elementwise.hpp.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/numbers/dmath.hpp"
#include "onnx/operators/elementwise.hpp"
#include "onnx/operators/functions.hpp"

namespace loom::core::evaluate {

Result<Dims> shape_of_both(const Call& c, const Dims& a, const Dims& b) {
  Dims out = a;
  if (!broadcast(out, b)) return c.bad("shapes that do not fit");
  return out;
}

namespace {

// n results of two arrays whose elements are x_step and z_step apart.
using PairRow = void (*)(const void* x, int64_t x_step, const void* z, int64_t z_step, void* y,
                         int64_t n);

// y[i] = F()(x[i], z[i]) in T. Floats are worth a loop for each kind of broadcasting.
template <class T, class R, class F>
void pair_row(const void* x_data, int64_t x_step, const void* z_data, int64_t z_step, void* y_data,
              int64_t n) {
  constexpr F f{};
  const T *x = static_cast<const T*>(x_data), *z = static_cast<const T*>(z_data);
  R* y = static_cast<R*>(y_data);
  if constexpr (std::is_same_v<T, float>) {
    if (x_step == 1 && z_step == 1) {
      for (int64_t i = 0; i < n; ++i) y[i] = f(x[i], z[i]);
      return;
    }
    if (x_step == 1 && z_step == 0) {
      const T second = *z;
      for (int64_t i = 0; i < n; ++i) y[i] = f(x[i], second);
      return;
    }
    if (x_step == 0 && z_step == 1) {
      const T first = *x;
      for (int64_t i = 0; i < n; ++i) y[i] = f(first, z[i]);
      return;
    }
  }
  for (int64_t i = 0; i < n; ++i) y[i] = f(x[i * x_step], z[i * z_step]);
}

// The rows of one operator for each computing type.
struct PairRows {
  PairRow f32, f64, i64, u64;
  PairRow of(OnnxType type) const {
    return type == OnnxType::f32   ? f32
           : type == OnnxType::f64 ? f64
           : type == OnnxType::i64 ? i64
                                   : u64;
  }
};
// I: uint64_t if the bits of a result do not depend on the sign of integers.
template <class F, class I = int64_t>
constexpr PairRows kNumbers{pair_row<float, float, F>, pair_row<double, double, F>,
                            pair_row<I, I, F>, pair_row<uint64_t, uint64_t, F>};
template <class F, class I = int64_t>
constexpr PairRows kTests{pair_row<float, uint8_t, F>, pair_row<double, uint8_t, F>,
                          pair_row<I, uint8_t, F>, pair_row<uint64_t, uint8_t, F>};

// y = a op b with broadcasting, by the row of their type.
void map_pairs(const Call& c, const Value& a, const Value& b, Value& y, PairRow row) {
  const int in = element_bytes(a.type), out = element_bytes(y.type);
  const SideBySide walk(
      y.dims, {broadcast_steps(a.dims, y.dims), broadcast_steps(b.dims, y.dims), steps_of(y.dims)});
  walk.run_all(c, 1.0, [&](const auto& offsets, int64_t n, const auto& step) {
    row(a.data<std::byte>() + offsets[0] * in, step[0], b.data<std::byte>() + offsets[1] * in,
        step[1], y.data<std::byte>() + offsets[2] * out, n);
  });
}

// Sums and products of integers wrap: they are computed without a sign.
struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Subtract {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Multiply {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return a / b;
    } else {
      if (std::is_signed_v<T> && b == static_cast<T>(-1))
        return static_cast<T>(uint64_t{} - static_cast<uint64_t>(a));
      return b == 0 ? 0 : a / b;
    }
  }
};
// The sign of the divisor, as in Python; or of the dividend, as in C.
template <bool OfDividend>
struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    T r{};
    if constexpr (std::is_floating_point_v<T>)
      r = std::fmod(a, b);
    else if (b != 0 && !(std::is_signed_v<T> && b == static_cast<T>(-1)))
      r = a % b;
    return !OfDividend && r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
};
struct Largest {
  template <class T>
  T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Least {
  template <class T>
  T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

// In the order of Pair.
constexpr PairRows kArithmetic[] = {
    kNumbers<Add, uint64_t>,
    kNumbers<Subtract, uint64_t>,
    kNumbers<Multiply, uint64_t>,
    kNumbers<Divide>,
    kNumbers<Remainder<false>>,
    kNumbers<Remainder<true>>,
    kNumbers<Largest>,
    kNumbers<Least>,
};

}  // namespace

Result<Value> combine(const Call& c, Pair op, const Value& a, const Value& b) {
  LOOM_ASSIGN(Dims dims, shape_of_both(c, a.dims, b.dims));
  LOOM_ASSIGN(Value y, c.make(a.type, std::move(dims)));
  map_pairs(c, a, b, y, kArithmetic[static_cast<size_t>(op)].of(a.type));
  return y;
}

namespace {

// Before opset 7 the second input was broadcast along `axis` of the first.
Result<Value> second_input(const Call& c, const Value& a, Value b) {
  if (!c.given("axis") || c.opset >= 7) return b;
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", 0), a.rank()));
  Dims dims = b.dims;
  while (static_cast<int>(dims.size()) + axis < a.rank()) dims.push_back(1);
  return b.view_as(dims);
}

// All inputs, one after the other.
Result<Value> combined(const Call& c, Pair op) {
  LOOM_ASSIGN(Value sum, c.widened(0));
  for (size_t i = 1; i < c.in.size(); ++i) {
    LOOM_TRY(c.same_type(0, i));
    LOOM_ASSIGN(Value next, c.widened(i));
    LOOM_ASSIGN(next, second_input(c, sum, next));
    LOOM_ASSIGN(sum, combine(c, op, sum, next));
  }
  return sum;
}

Status combine_all(const Call& c, Pair op) {
  if (c.value(0).type == OnnxType::boolean) return c.bad("takes numbers");
  LOOM_ASSIGN(const Value y, combined(c, op));
  return c.give_as(y, c.value(0).type);
}

template <Pair Op>
Status arithmetic(const Call& c) {
  return combine_all(c, Op);
}

// Whole numbers by 0.
Status quotient_defined(const Call& c) {
  if (is_real(c.value(1).type)) return {};
  LOOM_ASSIGN(const Value by, c.as(1, OnnxType::i64));
  const auto* p = by.data<int64_t>();
  return std::find(p, p + by.count(), 0) == p + by.count() ? Status{}
                                                           : c.bad("divides an integer by 0");
}

Status modulo(const Call& c) {
  return combine_all(c, c.integer("fmod", 0) != 0 ? Pair::remainder : Pair::mod);
}

Status mean(const Call& c) {
  if (!is_real(c.value(0).type)) return c.bad("takes floats");
  LOOM_ASSIGN(const Value sum, combined(c, Pair::add));
  LOOM_ASSIGN(Value one, c.make(OnnxType::f64, {}));
  *one.data<double>() = static_cast<double>(c.in.size());
  LOOM_ASSIGN(const Value count, cast(c.rt.memory, one, sum.type));
  LOOM_ASSIGN(const Value y, combine(c, Pair::div, sum, count));
  return c.give_as(y, c.value(0).type);
}

struct WholePower {
  int64_t operator()(int64_t base, int64_t exponent) const {
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 != 0 ? -1 : 1) : 0;
    uint64_t out = 1, square = static_cast<uint64_t>(base);
    for (; exponent != 0; exponent >>= 1) {
      if ((exponent & 1) != 0) out *= square;
      square *= square;
    }
    return static_cast<int64_t>(out);
  }
};
struct RealPower {
  double operator()(double base, double exponent) const { return pow(base, exponent); }
};

Status power(const Call& c) {
  const bool whole = !is_real(c.value(0).type) && !is_real(c.value(1).type);
  LOOM_ASSIGN(const Dims dims, shape_of_both(c, c.value(0).dims, c.value(1).dims));
  const OnnxType in = whole ? OnnxType::i64 : OnnxType::f64;
  if (!whole && c.value(0).type == OnnxType::f32 && c.value(1).count() == 1) {
    LOOM_ASSIGN(const double exponent, c.number(1, 1));
    if (exponent == 2) {
      LOOM_ASSIGN(const Value y, combine(c, Pair::mul, c.value(0), c.value(0)));
      return c.give(y.view_as(dims));
    }
  }
  LOOM_ASSIGN(const Value a, c.as(0, in));
  LOOM_ASSIGN(const Value b, c.as(1, in));
  LOOM_ASSIGN(Value y, c.make(in, dims));
  map_pairs(c, a, b, y,
            whole ? pair_row<int64_t, int64_t, WholePower> : pair_row<double, double, RealPower>);
  return c.give_as(y, c.value(0).type);
}

// Powers of integers that leave their type.
Status power_defined(const Call& c) {
  if (is_real(c.value(0).type)) return {};
  LOOM_ASSIGN(const Dims dims, shape_of_both(c, c.value(0).dims, c.value(1).dims));
  LOOM_ASSIGN(const Value a, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(const Value b, c.as(1, OnnxType::f64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, dims));
  map_pairs(c, a, b, y, pair_row<double, double, RealPower>);
  return fits_whole_type(c, y, c.value(0).type);
}

Status comparison(const Call& c, const PairRows& rows, bool swapped = false) {
  LOOM_TRY(c.same_type(0, 1));
  LOOM_ASSIGN(Value a, c.widened(0));
  LOOM_ASSIGN(Value b, c.widened(1));
  LOOM_ASSIGN(b, second_input(c, a, b));
  LOOM_ASSIGN(Dims dims, shape_of_both(c, a.dims, b.dims));
  LOOM_ASSIGN(Value y, c.make(OnnxType::boolean, std::move(dims)));
  if (swapped) std::swap(a, b);
  map_pairs(c, a, b, y, rows.of(a.type));
  return c.give(std::move(y));
}

struct Equals {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a == b ? 1 : 0;
  }
};
struct Below {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a < b ? 1 : 0;
  }
};
struct NotAbove {
  template <class T>
  uint8_t operator()(T a, T b) const {
    return a <= b ? 1 : 0;
  }
};
Status equal(const Call& c) {
  return comparison(c, kTests<Equals, uint64_t>);
}
Status less(const Call& c) {
  return comparison(c, kTests<Below>);
}
Status less_equal(const Call& c) {
  return comparison(c, kTests<NotAbove>);
}
Status greater(const Call& c) {
  return comparison(c, kTests<Below>, true);
}
Status greater_equal(const Call& c) {
  return comparison(c, kTests<NotAbove>, true);
}

// On the bits of integers, or on booleans.
struct BitsAnd {
  uint64_t operator()(uint64_t a, uint64_t b) const { return a & b; }
};
struct BitsOr {
  uint64_t operator()(uint64_t a, uint64_t b) const { return a | b; }
};
struct BitsXor {
  uint64_t operator()(uint64_t a, uint64_t b) const { return a ^ b; }
};
template <class F>
struct OfBooleans {
  uint64_t operator()(uint64_t a, uint64_t b) const { return F()(a != 0 ? 1 : 0, b != 0 ? 1 : 0); }
};
struct ShiftLeft {
  uint64_t operator()(uint64_t a, uint64_t b) const { return b < 64 ? a << b : 0; }
};
struct ShiftRight {
  uint64_t operator()(uint64_t a, uint64_t b) const { return b < 64 ? a >> b : 0; }
};
struct ShiftSigned {  // fills with the sign; a count below 0 is beyond the width
  uint64_t operator()(uint64_t a, uint64_t b) const {
    return static_cast<uint64_t>(static_cast<int64_t>(a) >> std::min<uint64_t>(b, 63));
  }
};

Status on_bits(const Call& c, PairRow row) {
  LOOM_ASSIGN(const Value a, c.as(0, OnnxType::u64));
  LOOM_ASSIGN(Value b, c.as(1, OnnxType::u64));
  LOOM_ASSIGN(b, second_input(c, a, b));
  LOOM_ASSIGN(Dims dims, shape_of_both(c, a.dims, b.dims));
  LOOM_ASSIGN(Value y, c.make(OnnxType::u64, std::move(dims)));
  map_pairs(c, a, b, y, row);
  return c.give_as(y, c.value(0).type);
}
template <class F>
Status logic(const Call& c) {
  if (c.value(0).type != OnnxType::boolean) return c.bad("takes bool");
  LOOM_TRY(c.same_type(0, 1));
  return on_bits(c, pair_row<uint64_t, uint64_t, OfBooleans<F>>);
}
Status bits_of(const Call& c, PairRow row) {
  LOOM_TRY(c.same_type(0, 1));
  if (!is_whole(c.value(0).type)) return c.bad("takes integers");
  return on_bits(c, row);
}
template <class F>
Status bitwise(const Call& c) {
  return bits_of(c, pair_row<uint64_t, uint64_t, F>);
}
Status bit_shift(const Call& c) {
  const std::string direction = c.text("direction", "");
  if (direction == "LEFT") return bitwise<ShiftLeft>(c);
  if (direction != "RIGHT") return c.bad("direction must be LEFT or RIGHT");
  return is_signed(c.value(0).type) ? bitwise<ShiftSigned>(c) : bitwise<ShiftRight>(c);
}

// n elements of T: those of a where `which` is not 0, else those of b.
template <class T>
void choose_row(const uint8_t* which, const void* a_data, const void* b_data, void* y_data,
                int64_t n, const SideBySide::Offsets& step) {
  const T *a = static_cast<const T*>(a_data), *b = static_cast<const T*>(b_data);
  T* y = static_cast<T*>(y_data);
  for (int64_t i = 0; i < n; ++i) y[i] = which[i * step[0]] != 0 ? a[i * step[1]] : b[i * step[2]];
}

void choose(const Call& c, const Dims& dims, Value& y) {
  const int size = element_bytes(y.type);
  auto* const row = size == 1   ? choose_row<uint8_t>
                    : size == 2 ? choose_row<uint16_t>
                    : size == 4 ? choose_row<uint32_t>
                                : choose_row<uint64_t>;
  const SideBySide walk(
      dims, {broadcast_steps(c.value(0).dims, dims), broadcast_steps(c.value(1).dims, dims),
             broadcast_steps(c.value(2).dims, dims), steps_of(dims)});
  walk.run_all(c, 1, [&](const auto& offsets, int64_t n, const auto& step) {
    row(c.value(0).data<uint8_t>() + offsets[0], c.value(1).data<std::byte>() + offsets[1] * size,
        c.value(2).data<std::byte>() + offsets[2] * size, y.data<std::byte>() + offsets[3] * size,
        n, step);
  });
}

Status where(const Call& c) {
  if (c.value(0).type != OnnxType::boolean) return c.bad("the condition must be bool");
  LOOM_TRY(c.same_type(1, 2));
  LOOM_ASSIGN(Dims dims, shape_of_both(c, c.value(0).dims, c.value(1).dims));
  LOOM_ASSIGN(dims, shape_of_both(c, dims, c.value(2).dims));
  LOOM_ASSIGN(Value y, c.make(c.value(1).type, dims));
  choose(c, dims, y);
  return c.give(std::move(y));
}

struct Slope {
  template <class T>
  T operator()(T v, T s) const {
    if (!(v < T{})) return v;
    if constexpr (std::is_floating_point_v<T>)
      return v * s;
    else
      return static_cast<T>(static_cast<uint64_t>(v) * static_cast<uint64_t>(s));
  }
};

Status prelu(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(Value slope, c.widened(1));
  if (c.opset < 7 && x.rank() > 1 && slope.count() == x.dims[1]) {  // one per channel
    Dims by_channel(x.dims.size() - 1, 1);
    by_channel[0] = x.dims[1];
    slope = slope.view_as(by_channel);
  }
  LOOM_ASSIGN(const Dims dims, shape_of_both(c, x.dims, slope.dims));
  if (dims != x.dims) return c.bad("a slope that does not fit its input");
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  map_pairs(c, x, slope, y, kNumbers<Slope>.of(x.type));
  return c.give_as(y, c.value(0).type);
}

constexpr std::string_view kOfNumbers = "NN>N axis broadcast consumed_inputs";
constexpr std::string_view kCompared = "NN>b axis broadcast consumed_inputs";
constexpr std::string_view kOfBooleans = "BB>b axis broadcast consumed_inputs";
constexpr uint16_t kFolds = Operator::pointwise | Operator::folds;
constexpr uint16_t kFunction = kFolds | Operator::function;
constexpr Operator kPairs[] = {
    {"", "Add", arithmetic<Pair::add>, kOfNumbers, "binary add", kFunction},
    {"", "Sub", arithmetic<Pair::sub>, kOfNumbers, "binary sub", kFunction},
    {"", "Mul", arithmetic<Pair::mul>, kOfNumbers, "binary mul", kFunction},
    {"", "Div", arithmetic<Pair::div>, kOfNumbers, "binary div", kFunction, nullptr, nullptr,
     quotient_defined},
    {"", "Mod", modulo, "aa fmod"},
    {"", "Pow", power, "Pn>P axis broadcast consumed_inputs", "", kFunction, nullptr, nullptr,
     power_defined},
    {"", "Max", arithmetic<Pair::max>, "N+>N", "binary max", kFunction},
    {"", "Min", arithmetic<Pair::min>, "N+>N", "binary min", kFunction},
    {"", "Sum", arithmetic<Pair::add>, "6 F+>F", "binary sum"},
    {"", "Mean", mean, "6 F+>F", "binary mean"},
    {"", "Equal", equal, "AA>b axis broadcast consumed_inputs", "compare equal", kFolds},
    {"", "Less", less, kCompared, "compare less", kFunction},
    {"", "LessOrEqual", less_equal, "NN>b", "compare less_equal", kFunction},
    {"", "Greater", greater, kCompared, "compare greater", kFunction},
    {"", "GreaterOrEqual", greater_equal, "NN>b", "compare greater_equal", kFunction},
    {"", "And", logic<BitsAnd>, kOfBooleans, "logic and", kFolds},
    {"", "Or", logic<BitsOr>, kOfBooleans, "logic or", kFolds},
    {"", "Xor", logic<BitsXor>, "BB axis broadcast consumed_inputs|7 BB>b", "logic xor"},
    {"", "BitwiseAnd", bitwise<BitsAnd>, "aa"},
    {"", "BitwiseOr", bitwise<BitsOr>, "aa"},
    {"", "BitwiseXor", bitwise<BitsXor>, "aa"},
    {"", "BitShift", bit_shift, "aa direction"},
    {"", "Where", where, "bAA>A", "where", kFunction | Operator::moves},
    {"", "PRelu", prelu, "7 NN>N", "activation prelu"},
};

}  // namespace

std::span<const Operator> pair_operators() {
  return kPairs;
}

}  // namespace loom::core::evaluate
