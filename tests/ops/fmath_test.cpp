// The elementary functions against libm in double: error bounds over dense sweeps of the float
// line, special values, and equal bits from vector and scalar lanes.
#include "ops/fmath.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/numbers/bits.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();

// Distance of neighbouring floats at r.
double ulp(double r) {
  const double magnitude = std::fabs(r);
  if (magnitude < 0x1p-126) return 0x1p-149;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  return std::ldexp(1.0, exponent - 24);
}

struct Function {
  const char* name;
  float (*ours)(float);
  double (*truth)(double);
  float low, high;
  double ulps;          // largest error in units of the last place,
  double absolute;      // or this much
  double argument = 0;  // and this many units of |2 u|, the exponent of gelu_tanh
};

double true_sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
double gelu_exponent(double x) {
  return 2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
}
double true_gelu_tanh(double x) {
  return x / (1 + std::exp(-gelu_exponent(x)));
}
double true_gelu_erf(double x) {
  return 0.5 * x * std::erfc(-x * M_SQRT1_2);
}
double true_normal_cdf(double x) {
  return 0.5 * std::erfc(-x * M_SQRT1_2);
}
double true_softplus(double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}
double true_mish(double x) {
  return x * std::tanh(true_softplus(x));
}
double true_elu(double x) {
  return x > 0 ? x : std::expm1(x);
}
double true_hard_swish(double x) {
  return x * std::fmin(std::fmax(x + 3, 0), 6) / 6;
}

// Bounds come from near-exhaustive sweeps (every 41st float), rounded up. Below -87 sigmoid, silu
// and gelu_tanh are 0, because e^-x overflows. All others keep their relative precision down to the
// smallest normal numbers.
const Function kFunctions[] = {
    {"exp", fmath::exp<float>, [](double x) { return std::exp(x); }, -kInf, 88.72f, 1.0, 0},
    {"log", fmath::log<float>, [](double x) { return std::log(x); }, 1e-45f, kInf, 0.85, 0},
    {"tanh", fmath::tanh<float>, [](double x) { return std::tanh(x); }, -kInf, kInf, 1.4, 0},
    {"sigmoid", fmath::sigmoid<float>, true_sigmoid, -87.0f, kInf, 2.5, 0},
    {"sigmoid", fmath::sigmoid<float>, true_sigmoid, -kInf, kInf, 2.5, 3e-39},
    {"silu", fmath::silu<float>, [](double x) { return x * true_sigmoid(x); }, -87.0f, kLargest,
     2.5, 0},
    {"silu", fmath::silu<float>, [](double x) { return x * true_sigmoid(x); }, -kLargest, kLargest,
     2.5, 3e-37},
    {"normal_cdf", fmath::normal_cdf<float>, true_normal_cdf, -kInf, kInf, 12.0, 0},
    {"softplus", fmath::softplus<float>, true_softplus, -kInf, kInf, 2.1, 0},
    {"mish", fmath::mish<float>, true_mish, -80.0f, kLargest, 4.6, 0},
    {"mish", fmath::mish<float>, true_mish, -kLargest, kLargest, 4.6, 1e-32},
    {"elu", fmath::elu<float>, true_elu, -kInf, kInf, 2.0, 0},
    {"hard_swish", fmath::hard_swish<float>, true_hard_swish, -kLargest, kLargest, 4.0, 0},
    {"gelu_tanh", fmath::gelu_tanh<float>, true_gelu_tanh, -1e12f, kLargest, 4.2, 3e-37, 3.2},
    {"gelu_erf", fmath::gelu_erf<float>, true_gelu_erf, -kLargest, kLargest, 16.0, 0},
};

TEST(Fmath, FunctionsStayWithinTheirBounds) {
  for (const Function& f : kFunctions) {
    double worst = 0;
    float at = 0;
    for (uint64_t code = 0; code <= 0xffffffff; code += 2053) {
      const float x = f32_from_bits(static_cast<uint32_t>(code));
      if (!(x >= f.low && x <= f.high)) continue;
      const double truth = f.truth(static_cast<double>(x));
      const double got = static_cast<double>(f.ours(x));
      const double error = got == truth ? 0 : std::fabs(got - truth);
      const double units =
          error / ulp(truth) -
          f.argument * std::fmin(std::fabs(gelu_exponent(static_cast<double>(x))), 200.0);
      if (error <= f.absolute || units <= worst) continue;
      worst = units;
      at = x;
    }
    EXPECT_LE(worst, f.ulps) << f.name << " at " << at << " gives " << f.ours(at);
  }
}

struct Special {
  const char* name;
  float (*ours)(float);
  float x, y;
};

TEST(Fmath, SpecialValuesAreWhatTheyShouldBe) {
  const Special cases[] = {
      {"exp", fmath::exp<float>, 0.0f, 1.0f},
      {"exp", fmath::exp<float>, -0.0f, 1.0f},
      {"exp", fmath::exp<float>, kInf, kInf},
      {"exp", fmath::exp<float>, 88.73f, kInf},
      {"exp", fmath::exp<float>, kLargest, kInf},
      {"exp", fmath::exp<float>, -kInf, 0.0f},
      {"exp", fmath::exp<float>, -104.0f, 0.0f},
      {"exp", fmath::exp<float>, -kLargest, 0.0f},
      {"exp", fmath::exp<float>, kNan, kNan},
      {"log", fmath::log<float>, 1.0f, 0.0f},
      {"log", fmath::log<float>, 0.0f, -kInf},
      {"log", fmath::log<float>, -0.0f, -kInf},
      {"log", fmath::log<float>, -1.0f, kNan},
      {"log", fmath::log<float>, -kInf, kNan},
      {"log", fmath::log<float>, kInf, kInf},
      {"log", fmath::log<float>, kNan, kNan},
      {"tanh", fmath::tanh<float>, 0.0f, 0.0f},
      {"tanh", fmath::tanh<float>, -0.0f, 0.0f},
      {"tanh", fmath::tanh<float>, kInf, 1.0f},
      {"tanh", fmath::tanh<float>, -kInf, -1.0f},
      {"tanh", fmath::tanh<float>, 1e-45f, 1e-45f},
      {"tanh", fmath::tanh<float>, kNan, kNan},
      {"sigmoid", fmath::sigmoid<float>, 0.0f, 0.5f},
      {"sigmoid", fmath::sigmoid<float>, kInf, 1.0f},
      {"sigmoid", fmath::sigmoid<float>, -kInf, 0.0f},
      {"sigmoid", fmath::sigmoid<float>, kNan, kNan},
      {"silu", fmath::silu<float>, 0.0f, 0.0f},
      {"silu", fmath::silu<float>, kInf, kInf},
      {"silu", fmath::silu<float>, -kLargest, 0.0f},
      {"silu", fmath::silu<float>, kNan, kNan},
      {"normal_cdf", fmath::normal_cdf<float>, 0.0f, 0.5f},
      {"normal_cdf", fmath::normal_cdf<float>, kInf, 1.0f},
      {"normal_cdf", fmath::normal_cdf<float>, -kInf, 0.0f},
      {"normal_cdf", fmath::normal_cdf<float>, kNan, kNan},
      {"softplus", fmath::softplus<float>, kInf, kInf},
      {"softplus", fmath::softplus<float>, -kInf, 0.0f},
      {"softplus", fmath::softplus<float>, 0.0f, 0.693147182f},
      {"softplus", fmath::softplus<float>, kNan, kNan},
      {"mish", fmath::mish<float>, 0.0f, 0.0f},
      {"mish", fmath::mish<float>, kInf, kInf},
      {"mish", fmath::mish<float>, kLargest, kLargest},
      {"mish", fmath::mish<float>, -kLargest, 0.0f},
      {"mish", fmath::mish<float>, kNan, kNan},
      {"elu", fmath::elu<float>, 0.0f, 0.0f},
      {"elu", fmath::elu<float>, kInf, kInf},
      {"elu", fmath::elu<float>, -kInf, -1.0f},
      {"elu", fmath::elu<float>, kNan, kNan},
      {"hard_swish", fmath::hard_swish<float>, -3.0f, 0.0f},
      {"hard_swish", fmath::hard_swish<float>, 3.0f, 3.0f},
      {"hard_swish", fmath::hard_swish<float>, kInf, kInf},
      {"hard_swish", fmath::hard_swish<float>, kLargest, kLargest},
      {"hard_swish", fmath::hard_swish<float>, -kLargest, 0.0f},
      {"hard_swish", fmath::hard_swish<float>, kNan, kNan},
      {"gelu_tanh", fmath::gelu_tanh<float>, kInf, kInf},
      {"gelu_tanh", fmath::gelu_tanh<float>, kLargest, kLargest},
      {"gelu_tanh", fmath::gelu_tanh<float>, -kLargest, 0.0f},
      {"gelu_tanh", fmath::gelu_tanh<float>, kNan, kNan},
      {"gelu_erf", fmath::gelu_erf<float>, kInf, kInf},
      {"gelu_erf", fmath::gelu_erf<float>, -kLargest, 0.0f},
      {"gelu_erf", fmath::gelu_erf<float>, kNan, kNan},
      {"abs", fmath::abs<float>, -0.0f, 0.0f},
      {"abs", fmath::abs<float>, -kInf, kInf},
  };
  for (const Special& c : cases) {
    const float y = c.ours(c.x);
    if (c.y != c.y) {
      EXPECT_NE(y, y) << c.name << "(" << c.x << ")";
    } else {
      EXPECT_EQ(y, c.y) << c.name << "(" << c.x << ")";
    }
  }
}

TEST(Fmath, MinAndMaxAnswerTheSecondWhenEitherIsNan) {
  EXPECT_EQ(fmath::max<float>(1.0f, 2.0f), 2.0f);
  EXPECT_EQ(fmath::min<float>(1.0f, 2.0f), 1.0f);
  EXPECT_EQ(fmath::max<float>(kNan, 2.0f), 2.0f);
  EXPECT_EQ(fmath::min<float>(kNan, 2.0f), 2.0f);
  EXPECT_TRUE(std::isnan(fmath::max<float>(2.0f, kNan)));
  EXPECT_TRUE(std::isnan(fmath::min<float>(2.0f, kNan)));
  EXPECT_EQ(f32_bits(fmath::max<float>(-0.0f, 0.0f)), f32_bits(0.0f));
  EXPECT_EQ(f32_bits(fmath::max<float>(0.0f, -0.0f)), f32_bits(-0.0f));
}

TEST(Fmath, RoundingGoesToTheNearestEvenInteger) {
  const float ties[] = {-3.5f, -2.5f, -1.5f,  -0.5f,      0.5f,
                        1.5f,  2.5f,  126.5f, 4194303.5f, -4194303.5f};
  for (float x : ties) EXPECT_EQ(fmath::round_even<float>(x), std::nearbyint(x)) << x;
  for (float x = -300.0f; x < 300.0f; x += 0.0371f) {
    ASSERT_EQ(fmath::round_even<float>(x), std::nearbyint(x)) << x;
    ASSERT_EQ(fmath::round_to_int<float>(x), static_cast<int32_t>(std::nearbyint(x))) << x;
  }
  for (int32_t n = -126; n <= 127; ++n)
    ASSERT_EQ(fmath::exp2_int<float>(n), std::ldexp(1.0f, n)) << n;
}

typedef float Quad __attribute__((vector_size(16)));

template <class Scalar, class Vector>
void expect_same_lanes(const char* name, Scalar scalar, Vector vector) {
  for (uint64_t code = 0; code < 0xffffffff; code += 4 * 100003) {
    Quad x;
    for (uint32_t i = 0; i < 4; ++i) x[i] = f32_from_bits(static_cast<uint32_t>(code) + i * 100003);
    const Quad y = vector(x);
    for (int i = 0; i < 4; ++i) {
      const float lane = y[i], alone = scalar(x[i]);
      ASSERT_TRUE(f32_bits(lane) == f32_bits(alone) || (lane != lane && alone != alone))
          << name << "(" << x[i] << ")";
    }
  }
}

TEST(Fmath, VectorLanesHaveTheBitsOfScalars) {
#define LOOM_LANES(f) \
  expect_same_lanes(  \
      #f, [](float x) { return fmath::f<float>(x); }, [](Quad x) { return fmath::f<Quad>(x); })
  LOOM_LANES(exp);
  LOOM_LANES(log);
  LOOM_LANES(tanh);
  LOOM_LANES(sigmoid);
  LOOM_LANES(silu);
  LOOM_LANES(normal_cdf);
  LOOM_LANES(softplus);
  LOOM_LANES(gelu_tanh);
  LOOM_LANES(gelu_erf);
  LOOM_LANES(mish);
  LOOM_LANES(elu);
  LOOM_LANES(hard_swish);
  LOOM_LANES(sqrt);
  LOOM_LANES(abs);
#undef LOOM_LANES
}

long double wide_sigmoid(long double x) {
  return 1 / (1 + std::exp(-x));
}
long double wide_softplus(long double x) {
  return std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x)));
}

// Against long double if it is wider. Relative: every digit of a tail counts. Errors of gelu_tanh
// and gelu_erf grow with their exponent, which is x^3 and x^2 times a rounded number.
TEST(Fmath, DoublesHaveThePrecisionOfDoubles) {
  if (std::numeric_limits<long double>::digits <= 53) GTEST_SKIP() << "long double is not wider";
  struct Wide {
    Activation kind;
    long double (*truth)(long double);
    double relative = 1e-15;
  };
  using L = long double;
  const Wide cases[] = {
      {Activation::leaky_relu, [](L x) { return x < 0 ? x * 0.01L : x; }},
      {Activation::silu, [](L x) { return x * wide_sigmoid(x); }},
      {Activation::gelu_tanh,
       [](L x) {
         return x * wide_sigmoid(2 * std::sqrt(2 / 3.14159265358979323846L) *
                                 (x + 0.044715L * x * x * x));
       },
       1e-12},
      {Activation::gelu_erf,
       [](L x) { return 0.5L * x * std::erfc(-x * 0.707106781186547524400844L); }, 4e-15},
      {Activation::tanh, [](L x) { return std::tanh(x); }},
      {Activation::sigmoid, wide_sigmoid},
      {Activation::mish, [](L x) { return x * std::tanh(wide_softplus(x)); }, 2e-15},
      {Activation::softplus, wide_softplus},
      {Activation::elu, [](L x) { return x > 0 ? x : std::expm1(x); }},
      {Activation::hard_swish, [](L x) { return x * std::fmin(std::fmax(x + 3, 0.0L), 6.0L) / 6; }},
  };
  for (const Wide& c : cases) {
    double worst = 0, at = 0;
    const auto compare = [&](double x) {
      const long double truth = c.truth(x), got = activate<double>(c.kind, x);
      if (std::fabs(truth) < 1e-300L || got == truth) return;
      const auto relative = static_cast<double>(std::fabs((got - truth) / truth));
      if (relative > worst) worst = relative, at = x;
    };
    for (double x = -36; x < 36; x += 0.0173) compare(x);
    for (double x = 1e-20; x < 1; x *= 1.37) compare(x), compare(-x);
    EXPECT_LE(worst, c.relative) << activation_name(c.kind) << " at " << at;
  }
  EXPECT_EQ(fmath::sqrt<double>(2.0), std::sqrt(2.0));
  EXPECT_EQ(fmath::abs<double>(-0.5), 0.5);
}

TEST(Activation, NamesComeBackAsTheirKinds) {
  for (int i = 0; i < kActivations; ++i) {
    const auto kind = static_cast<Activation>(i);
    const Result<Activation> parsed = parse_activation(activation_name(kind));
    ASSERT_TRUE(parsed.ok()) << i;
    EXPECT_EQ(*parsed, kind);
  }
  EXPECT_EQ(parse_activation("swish\n").error().message,
            "unknown activation 'swish\\x0a'; known are linear, relu, leaky_relu, relu2, silu, "
            "gelu_tanh, gelu_erf, "
            "tanh, sigmoid, mish, softplus, elu, hard_swish");
}

TEST(Activation, PiecewiseKindsAreExact) {
  struct Case {
    Activation kind;
    float x, y;
  };
  const Case cases[] = {
      {Activation::linear, -3.0f, -3.0f},      {Activation::relu, -3.0f, 0.0f},
      {Activation::relu, 2.5f, 2.5f},          {Activation::relu, kNan, 0.0f},
      {Activation::leaky_relu, -2.0f, -0.02f}, {Activation::leaky_relu, 2.0f, 2.0f},
      {Activation::relu2, 3.0f, 9.0f},         {Activation::relu2, -3.0f, 0.0f},
  };
  for (const Case& c : cases)
    EXPECT_EQ(activate<float>(c.kind, c.x), c.y) << activation_name(c.kind);
}

}  // namespace
}  // namespace loom::core
