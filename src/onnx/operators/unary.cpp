// Functions of one value: the kernels of networks where they have one for f32, double precision
// rounded once otherwise. See elementwise.hpp.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/numbers/dmath.hpp"
#include "onnx/operators/elementwise.hpp"
#include "onnx/operators/functions.hpp"
#include "ops/fmath.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {

namespace {

Status only_real(const Call& c) {
  return is_real(c.value(0).type) ? Status{} : c.bad("takes floats");
}

Result<Value> map_kernel(const Call& c, const Value& x, UnaryKind kind) {
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, x.dims));
  const int64_t n = x.count();
  if (n == 0) return y;
  auto* from = const_cast<float*>(x.data<float>());
  LOOM_TRY(c.rt.recorder.unary({f32_vector(from, n), f32_vector(y.data<float>(), n), kind}));
  LOOM_TRY(c.rt.recorder.flush());
  return y;
}

// y[i] = f(x[i]); f is a functor of a type that the function knows.
using UnaryRow = void (*)(const void* f, const void* x, void* y, int64_t n);
template <class F, class T>
void unary_row(const void* f, const void* x, void* y, int64_t n) {
  const F& of = *static_cast<const F*>(f);
  const T* from = static_cast<const T*>(x);
  T* to = static_cast<T*>(y);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(of(from[i]));
}
struct UnaryRows {
  UnaryRow f32, f64, i64, u64;
};

// y = f(x) in the computing type of x; `cost` in nanoseconds of an element.
Status map_rows(const Call& c, const void* f, const UnaryRows& rows, double cost) {
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(Value y, c.make(x.type, x.dims));
  const UnaryRow row = x.type == OnnxType::f32   ? rows.f32
                       : x.type == OnnxType::f64 ? rows.f64
                       : x.type == OnnxType::i64 ? rows.i64
                                                 : rows.u64;
  const int size = element_bytes(x.type);
  c.parallel(x.count(), cost, [&](int64_t begin, int64_t end) {
    row(f, x.data<std::byte>() + begin * size, y.data<std::byte>() + begin * size, end - begin);
  });
  return c.give_as(y, c.value(0).type);
}

// y = f(x) for a functor over any computing type.
template <class F>
Status by_functor(const Call& c, F f) {
  return map_rows(
      c, &f,
      {unary_row<F, float>, unary_row<F, double>, unary_row<F, int64_t>, unary_row<F, uint64_t>},
      1);
}
template <class F>
Status by_real_functor(const Call& c, F f, double cost = 1) {
  LOOM_TRY(only_real(c));
  return map_rows(c, &f, {unary_row<F, float>, unary_row<F, double>, nullptr, nullptr}, cost);
}

// In double precision, rounded once.
using RealFunction = std::function<double(double)>;
Status map_real(const Call& c, const RealFunction& f) {
  return by_real_functor(
      c, [&f](double v) { return f(v); }, 20);
}
template <double (*F)(double)>
Status by_function(const Call& c) {
  return map_real(c, F);
}

Status map_kernel_or(const Call& c, UnaryKind kind, double (*f)(double)) {
  LOOM_TRY(only_real(c));
  if (computing_type(c.value(0).type) != OnnxType::f32) return map_real(c, f);
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const Value y, map_kernel(c, x, kind));
  return c.give_as(y, c.value(0).type);
}
template <UnaryKind K, double (*F)(double)>
Status by_kernel(const Call& c) {
  return map_kernel_or(c, K, F);
}

double sigmoid_of(double x) {
  return x >= 0 ? 1 / (1 + dmath::exp(-x)) : dmath::exp(x) / (1 + dmath::exp(x));
}
double silu_of(double x) {
  return x * sigmoid_of(x);
}
double softplus_of(double x) {
  return std::max(x, 0.0) + dmath::log1p(dmath::exp(-std::abs(x)));
}
double mish_of(double x) {
  return x * dmath::tanh(softplus_of(x));
}
double hard_swish_of(double x) {
  return x * std::clamp(x / 6 + 0.5, 0.0, 1.0);
}
double square_root(double x) {
  return std::sqrt(x);
}
double reciprocal_of(double x) {
  return 1 / x;
}
double softsign_of(double x) {
  return x / (1 + std::abs(x));
}
double gelu_of(double x) {
  return x * dmath::normal_cdf(x);
}
double gelu_tanh_of(double x) {
  return 0.5 * x * (1 + dmath::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
double floor_of(double x) {
  return std::floor(x);
}
double ceil_of(double x) {
  return std::ceil(x);
}
double round_of(double x) {
  return std::nearbyint(x);
}

// The series of erf, for small |x|.
float erf_near_zero(float x) {
  const auto v = static_cast<double>(x), square = v * v;
  double sum = 0;
  constexpr double kTerms[] = {1.0 / 75600, -1.0 / 9360, 1.0 / 1320, -1.0 / 216,
                               1.0 / 42,    -1.0 / 10,   1.0 / 3};
  for (const double term : kTerms) sum = sum * square + term;
  return static_cast<float>(1.1283791670955126 * v * (1 - square * sum));
}

// For f32: the series where |x| is small, else from gelu(s) = s cdf(s) with s = x sqrt(2), whose
// kernel is fast: erf(x) = 2 cdf(s) - 1. Beyond s = 8 it is 1.
Status erf_operator(const Call& c) {
  if (computing_type(c.value(0).type) != OnnxType::f32) return by_function<dmath::erf>(c);
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(Value s, c.make(OnnxType::f32, x.dims));
  const float* from = x.data<float>();
  float* wide = s.data<float>();
  c.parallel(x.count(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float v = from[i] * 1.41421356F;
      wide[i] = v > 8.0F ? 8.0F : v < -8.0F ? -8.0F : v;
    }
  });
  LOOM_ASSIGN(Value y, map_kernel(c, s, UnaryKind::gelu_erf));
  float* to = y.data<float>();
  c.parallel(x.count(), 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float far = 2 * (to[i] / wide[i]) - 1, near = erf_near_zero(from[i]);
      to[i] = std::abs(from[i]) > 0.5F ? far : near;
    }
  });
  return c.give_as(y, c.value(0).type);
}

Status relu(const Call& c) {
  return by_functor(c, []<class T>(T v) { return v < T{} ? T{} : v; });
}
Status negative(const Call& c) {
  return by_functor(c, []<class T>(T v) {
    if constexpr (std::is_floating_point_v<T>)
      return -v;
    else
      return static_cast<T>(uint64_t{} - static_cast<uint64_t>(v));
  });
}
Status absolute(const Call& c) {
  return by_functor(c, []<class T>(T v) {
    if constexpr (std::is_floating_point_v<T>)
      return std::abs(v);
    else if constexpr (std::is_signed_v<T>)
      return v < 0 ? static_cast<T>(uint64_t{} - static_cast<uint64_t>(v)) : v;
    else
      return v;
  });
}
Status sign_of(const Call& c) {
  return by_functor(c, []<class T>(T v) {
    return v > T{} ? T{1} : v < T{} ? static_cast<T>(-1) : v == v ? T{} : v;
  });
}

Status leaky_relu(const Call& c) {
  const auto alpha = static_cast<float>(c.real("alpha", 0.01F));
  return by_real_functor(c, [=]<class T>(T v) { return v < 0 ? static_cast<T>(alpha) * v : v; });
}
Status elu(const Call& c) {
  const double alpha = c.real("alpha", 1.0);
  return map_real(c, [=](double v) { return v < 0 ? alpha * dmath::expm1(v) : v; });
}
Status selu(const Call& c) {
  const double alpha = c.real("alpha", 1.67326319217681884765625);
  const double gamma = c.real("gamma", 1.05070102214813232421875);
  return map_real(c, [=](double v) { return gamma * (v < 0 ? alpha * dmath::expm1(v) : v); });
}
Status celu(const Call& c) {
  const double alpha = c.real("alpha", 1.0);
  return map_real(c, [=](double v) { return v < 0 ? alpha * dmath::expm1(v / alpha) : v; });
}
Status hard_sigmoid(const Call& c) {
  const auto alpha = static_cast<float>(c.real("alpha", 0.2F));
  const auto beta = static_cast<float>(c.real("beta", 0.5F));
  return by_real_functor(c, [=]<class T>(T v) {
    const T y = static_cast<T>(alpha) * v + static_cast<T>(beta);
    return y < 0 ? T{} : y > 1 ? T{1} : y;
  });
}
Status thresholded_relu(const Call& c) {
  const double alpha = c.real("alpha", 1.0);
  return by_real_functor(c, [=]<class T>(T v) { return v > static_cast<T>(alpha) ? v : T{}; });
}
Status shrink(const Call& c) {
  const double lambda = c.real("lambd", 0.5), bias = c.real("bias", 0.0);
  return by_functor(c, [=]<class T>(T v) {
    const auto x = static_cast<double>(v);
    return static_cast<T>(x < -lambda ? x + bias : x > lambda ? x - bias : 0);
  });
}
Status swish(const Call& c) {
  const double alpha = c.real("alpha", 1.0);
  if (alpha == 1) return by_kernel<UnaryKind::silu, silu_of>(c);
  return map_real(c, [=](double v) { return v * sigmoid_of(alpha * v); });
}
Status gelu(const Call& c) {
  const std::string how = c.text("approximate", "none");
  if (how == "tanh") return by_kernel<UnaryKind::gelu_tanh, gelu_tanh_of>(c);
  if (how != "none") return c.not_done(cat("approximate '", printable(how), "'"));
  return by_kernel<UnaryKind::gelu_erf, gelu_of>(c);
}

Status not_of(const Call& c) {
  if (c.value(0).type != OnnxType::boolean) return c.bad("takes bool");
  LOOM_ASSIGN(Value y, c.make(OnnxType::boolean, c.value(0).dims));
  const auto* from = c.value(0).data<uint8_t>();
  for (int64_t i = 0, n = y.count(); i < n; ++i) y.data<uint8_t>()[i] = from[i] == 0 ? 1 : 0;
  return c.give(std::move(y));
}

Status float_test(const Call& c, const std::function<bool(double)>& f) {
  LOOM_TRY(only_real(c));
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::boolean, x.dims));
  for (int64_t i = 0, n = y.count(); i < n; ++i)
    y.data<uint8_t>()[i] = f(x.data<double>()[i]) ? 1 : 0;
  return c.give(std::move(y));
}
Status is_nan(const Call& c) {
  return float_test(c, [](double v) { return std::isnan(v); });
}
Status is_inf(const Call& c) {
  const bool below = c.integer("detect_negative", 1) != 0;
  const bool above = c.integer("detect_positive", 1) != 0;
  return float_test(c, [=](double v) { return std::isinf(v) && (v < 0 ? below : above); });
}

Status bitwise_not(const Call& c) {
  if (!is_whole(c.value(0).type)) return c.bad("takes integers");
  const auto flipped = [](uint64_t v) { return ~v; };
  const UnaryRow row = unary_row<decltype(flipped), uint64_t>;
  return map_rows(c, &flipped, {nullptr, nullptr, row, row}, 1);
}

template <class T>
struct Clipped {
  T low, high;
  bool has_low, has_high;
  T operator()(T v) const {
    if (has_low) v = v < low ? low : v;
    if (has_high) v = v > high ? high : v;
    return v;
  }
};

// The limits are inputs, or before opset 11 attributes.
Status clip(const Call& c) {
  Value limits[2];
  for (const size_t k : {1UL, 2UL}) {
    if (!c.has(k)) continue;
    LOOM_TRY(c.same_type(0, k));
    if (c.value(k).count() != 1) return c.bad("limits must be one number each");
    LOOM_ASSIGN(limits[k - 1], c.widened(k));
  }
  return with_type(computing_type(c.value(0).type), [&]<class T>(T) {
    const Clipped<T> f{c.has(1) ? *limits[0].template data<T>() : static_cast<T>(c.real("min", 0)),
                       c.has(2) ? *limits[1].template data<T>() : static_cast<T>(c.real("max", 0)),
                       c.has(1) || c.given("min"), c.has(2) || c.given("max")};
    const UnaryRow row = unary_row<Clipped<T>, T>;
    return map_rows(c, &f, {row, row, row, row}, 1);
  });
}

using K = UnaryKind;
constexpr uint16_t kFunction = Operator::pointwise | Operator::function;
constexpr uint16_t kFolds = Operator::pointwise | Operator::folds;
constexpr Operator kUnary[] = {
    {"", "Relu", relu, "S>S", "unary relu", kFunction},
    {"", "Sigmoid", by_kernel<K::sigmoid, sigmoid_of>, "F>F", "unary sigmoid", kFunction},
    {"", "Tanh", by_kernel<K::tanh, dmath::tanh>, "F>F", "unary tanh", kFunction},
    {"", "Exp", by_kernel<K::exp, dmath::exp>, "F>F", "unary exp", kFunction},
    {"", "Log", by_function<log_of>, "F>F", "unary log", kFunction},
    {"", "Sqrt", by_kernel<K::sqrt, square_root>, "F>F", "unary sqrt", kFunction | kFolds},
    {"", "Reciprocal", by_kernel<K::reciprocal, reciprocal_of>, "F>F", "unary reciprocal",
     kFunction | kFolds},
    {"", "Softplus", by_kernel<K::softplus, softplus_of>, "F>F", "unary softplus", kFunction},
    {"", "Mish", by_kernel<K::mish, mish_of>, "18 F>F", "unary mish", kFunction},
    {"", "HardSwish", by_kernel<K::hard_swish, hard_swish_of>, "14 F>F", "unary hard_swish",
     kFunction},
    {"", "Softsign", by_function<softsign_of>, "F>F", "round softsign"},
    {"", "Erf", erf_operator, "N>N", "", kFunction},
    {"", "Sin", by_function<dmath::sin>, "7 F>F", "sine sin"},
    {"", "Cos", by_function<dmath::cos>, "7 F>F", "sine cos"},
    {"", "Tan", by_function<tan>, "a"},
    {"", "Asin", by_function<asin>, "a"},
    {"", "Acos", by_function<acos>, "a"},
    {"", "Atan", by_function<atan>, "a"},
    {"", "Sinh", by_function<sinh>, "a"},
    {"", "Cosh", by_function<cosh>, "a"},
    {"", "Asinh", by_function<asinh>, "a"},
    {"", "Acosh", by_function<acosh>, "a"},
    {"", "Atanh", by_function<atanh>, "a"},
    {"", "Floor", by_function<floor_of>, "F>F", "round floor"},
    {"", "Ceil", by_function<ceil_of>, "F>F", "round ceil"},
    {"", "Round", by_function<round_of>, "11 F>F", "round round"},
    {"", "Neg", negative, "S>S", "unary neg", kFunction | kFolds},
    {"", "Abs", absolute, "N>N", "unary abs", kFunction},
    {"", "Sign", sign_of, "9 N>N", "round sign"},
    {"", "LeakyRelu", leaky_relu, "F>F alpha:f", "activation leaky_relu", kFunction},
    {"", "Elu", elu, "F>F alpha:f", "activation elu", kFunction},
    {"", "Selu", selu, "6 F>F alpha:f gamma:f", "activation selu"},
    {"", "Celu", celu, "12 F>F alpha:f", "activation celu"},
    {"", "HardSigmoid", hard_sigmoid, "6 F>F alpha:f beta:f"},
    {"", "ThresholdedRelu", thresholded_relu, "10 F>F alpha:f", "round thresholded_relu"},
    {"", "Shrink", shrink, "a bias lambd"},
    {"", "Swish", swish, "a alpha"},
    {"", "Gelu", gelu, "20 F>F approximate:s", "gelu"},
    {"", "Not", not_of, "B>b", "logic not", kFolds},
    {"", "IsNaN", is_nan, "9 F>b", "logic is_nan"},
    {"", "IsInf", is_inf, "a detect_negative detect_positive"},
    {"", "BitwiseNot", bitwise_not, "a"},
    {"", "Clip", clip, "6 F>F max:f min:f|11 N?NN>N"},
};

}  // namespace

std::span<const Operator> unary_operators() {
  return kUnary;
}

}  // namespace loom::core::evaluate
