// The double-precision functions against libm: relative error over sweeps, and the values at the
// ends of the line.
#include "base/numbers/dmath.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace loom::core {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kMax = std::numeric_limits<double>::max();

struct Function {
  const char* name;
  double (*ours)(double);
  double (*truth)(double);
  double low, high;
  double relative;
};

const Function kFunctions[] = {
    {"exp", dmath::exp, std::exp, -708, 709.7, 1e-15},
    {"log", dmath::log, std::log, 1e-3, 30, 1e-15},
    {"tanh", dmath::tanh, std::tanh, -25, 25, 1e-15},
    {"tanh", dmath::tanh, std::tanh, -0.7, 0.7, 1e-15},
    {"erf", dmath::erf, std::erf, -7, 7, 1.5e-15},
    {"erf", dmath::erf, std::erf, -1e-3, 1e-3, 1e-15},
};

TEST(Dmath, FunctionsStayCloseToTruth) {
  for (const Function& f : kFunctions) {
    double worst = 0, at = 0;
    for (int i = 0; i <= 20000; ++i) {
      const double x = f.low + (f.high - f.low) * (i + 0.37) / 20001;
      const double truth = f.truth(x);
      const double error = std::fabs(f.ours(x) - truth) / std::fabs(truth);
      if (error <= worst) continue;
      worst = error;
      at = x;
    }
    EXPECT_LE(worst, f.relative) << f.name << " at " << at;
  }
}

TEST(Dmath, TheWholeLineOfDoublesIsTaken) {
  for (int exponent = -1074; exponent < 1024; ++exponent) {
    for (double factor : {1.0, -1.0, 1.3, -1.7}) {
      const double x = std::ldexp(factor, exponent);
      EXPECT_NEAR(dmath::tanh(x), std::tanh(x), std::fabs(std::tanh(x)) * 1e-15) << x;
      EXPECT_NEAR(dmath::erf(x), std::erf(x), std::fabs(std::erf(x)) * 1e-15 + 5e-324) << x;
      if (std::isinf(std::exp(x))) {
        EXPECT_EQ(dmath::exp(x), kInf) << x;
      } else {
        EXPECT_NEAR(dmath::exp(x), std::exp(x), std::exp(x) * 1e-15 + 5e-324) << x;
      }
      const double positive = std::fabs(x);
      EXPECT_NEAR(dmath::log(positive), std::log(positive), std::fabs(std::log(positive)) * 1e-15)
          << positive;
    }
  }
}

TEST(Dmath, SpecialValuesAreWhatTheyShouldBe) {
  struct Case {
    double got, expected;
  };
  const Case cases[] = {
      {dmath::exp(0), 1},       {dmath::exp(-0.0), 1},      {dmath::exp(kInf), kInf},
      {dmath::exp(kMax), kInf}, {dmath::exp(709.79), kInf}, {dmath::exp(-kInf), 0},
      {dmath::exp(-kMax), 0},   {dmath::exp(-746), 0},      {dmath::exp(kNan), kNan},
      {dmath::log(1), 0},       {dmath::log(0), -kInf},     {dmath::log(-0.0), -kInf},
      {dmath::log(-1), kNan},   {dmath::log(-kInf), kNan},  {dmath::log(kInf), kInf},
      {dmath::log(kNan), kNan}, {dmath::tanh(0), 0},        {dmath::tanh(kInf), 1},
      {dmath::tanh(-kInf), -1}, {dmath::tanh(kNan), kNan},  {dmath::erf(0), 0},
      {dmath::erf(kInf), 1},    {dmath::erf(-kInf), -1},    {dmath::erf(kNan), kNan},
  };
  for (const Case& c : cases) {
    const auto at = &c - cases;
    if (c.expected != c.expected) {
      EXPECT_NE(c.got, c.got) << at;
    } else {
      EXPECT_EQ(c.got, c.expected) << at;
    }
  }
  EXPECT_TRUE(std::signbit(dmath::tanh(-0.0)));
  EXPECT_TRUE(std::signbit(dmath::erf(-0.0)));
}

}  // namespace
}  // namespace loom::core
