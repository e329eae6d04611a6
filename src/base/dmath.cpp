#include "base/dmath.hpp"

#include <cstdint>

#include "base/bits.hpp"

namespace loom::dmath {
namespace {

constexpr double kLn2High = 6.93147180369123816490e-01;  // 33 bits, so n * kLn2High is exact
constexpr double kLn2Low = 1.90821492927058770002e-10;
// Pi/2 in three parts of 33 bits (Cody and Waite): n times the first two is exact for |n| < 2^20.
constexpr double kHalfPi1 = 1.57079632673412561417e+00;
constexpr double kHalfPi2 = 6.07710050630396597660e-11;
constexpr double kHalfPi3 = 2.02226624879595063154e-21;
constexpr double kMagic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer

constexpr double kTwoOverSqrtPi = 1.12837916709551257390;
constexpr double kInfinity = __builtin_inf();

bool sign_bit(double x) {
  return bit_cast<int64_t>(x) < 0;
}

double round_even(double x) {
  return (x + kMagic) - kMagic;
}

double power_of_two(int64_t n) {
  return bit_cast<double>((n + 1023) << 52);
}

// Taylor sums about 0 for |r| <= pi/4, from the smallest term up.
double sin_series(double r) {
  double term[10];
  term[0] = r;
  for (int i = 1; i < 10; ++i) term[i] = term[i - 1] * (r * r) / (-2.0 * i * (2.0 * i + 1.0));
  double sum = 0;
  for (int i = 9; i >= 0; --i) sum += term[i];
  return sum;
}

double cos_series(double r) {
  double term[11];
  term[0] = 1;
  for (int i = 1; i < 11; ++i) term[i] = term[i - 1] * (r * r) / (-2.0 * i * (2.0 * i - 1.0));
  double sum = 0;
  for (int i = 10; i >= 0; --i) sum += term[i];
  return sum;
}

// sin(x + quarter * pi/2)
double sin_quarter(double x, int64_t quarter) {
  const double n = round_even(x * 6.36619772367581382433e-01);
  const double r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
  switch ((static_cast<int64_t>(n) + quarter) & 3) {
    case 0: return sin_series(r);
    case 1: return cos_series(r);
    case 2: return -sin_series(r);
    default: return -cos_series(r);
  }
}

}  // namespace

double exp(double x) {
  if (x != x) return x;
  // Beyond these the result is infinite or 0 anyway, and n fits an exponent.
  x = x > 710.0 ? 710.0 : x;
  x = x < -750.0 ? -750.0 : x;
  const double n = round_even(x * 1.44269504088896338700);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double term = 1, sum = 0, terms[18];
  for (int i = 0; i < 18; ++i) {
    terms[i] = term;
    term = term * r / (i + 1);
  }
  for (int i = 17; i >= 0; --i) sum += terms[i];
  // Two steps keep the exponent in range at both ends.
  const auto whole = static_cast<int64_t>(n);
  const int64_t half = whole >> 1;
  return (sum * power_of_two(half)) * power_of_two(whole - half);
}

double log(double x) {
  if (x != x || x == kInfinity) return x;
  if (x < 0) return kInfinity - kInfinity;
  if (x == 0) return -kInfinity;
  const bool subnormal = x < 0x1p-1022;
  const int64_t bits = bit_cast<int64_t>(subnormal ? x * 0x1p52 : x);
  int64_t e = (bits >> 52) - (subnormal ? 1075 : 1023);
  double m = bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (m > 1.41421356237309504880) {
    m = m * 0.5;
    e += 1;
  }
  // log m = 2 atanh((m - 1) / (m + 1)), |argument| <= 0.172
  const double z = (m - 1) / (m + 1);
  double power = z, terms[12], sum = 0;
  for (int i = 0; i < 12; ++i) {
    terms[i] = power / (2 * i + 1);
    power = power * (z * z);
  }
  for (int i = 11; i >= 0; --i) sum += terms[i];
  const double n = static_cast<double>(e);
  return n * kLn2High + (2 * sum + n * kLn2Low);
}

double tanh(double x) {
  if (x != x) return x;
  const double a = x < 0 ? -x : x;
  double t;
  if (a < 0.35) {
    // m / (m + 2) with m = e^2a - 1, summed without its 1.
    double term = 2 * a, m = 0, terms[18];
    for (int i = 0; i < 18; ++i) {
      terms[i] = term;
      term = term * (2 * a) / (i + 2);
    }
    for (int i = 17; i >= 0; --i) m += terms[i];
    t = m / (m + 2);
  } else {
    t = 1 - 2 / (exp(2 * a) + 1);
  }
  return sign_bit(x) ? -t : t;
}

double erf(double x) {
  if (x != x) return x;
  const double a = x < 0 ? -x : x;
  double y = 1;
  if (a < 2) {
    // 2/sqrt(pi) e^-a^2 (a + 2 a^3 / 3 + 4 a^5 / 15 + ...): every term positive.
    double term = a, sum = 0, terms[60];
    for (int i = 0; i < 60; ++i) {
      terms[i] = term;
      term = term * (2 * (a * a)) / (2 * i + 3);
    }
    for (int i = 59; i >= 0; --i) sum += terms[i];
    y = kTwoOverSqrtPi * exp(-(a * a)) * sum;
  } else if (a < 6) {
    // erfc by its continued fraction: e^-a^2 / sqrt(pi) / (a + (1/2)/(a + 1/(a + (3/2)/(a + ...
    double fraction = a;
    for (int i = 100; i >= 1; --i) fraction = a + 0.5 * i / fraction;
    y = 1 - 0.5 * kTwoOverSqrtPi * exp(-(a * a)) / fraction;
  }
  return sign_bit(x) ? -y : y;
}

double sin(double x) {
  return sin_quarter(x, 0);
}
double cos(double x) {
  return sin_quarter(x, 1);
}

}  // namespace loom::dmath
