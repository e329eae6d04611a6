#include "base/numbers/dmath.hpp"

#include <cstdint>

#include "base/numbers/bits.hpp"

namespace loom::core::dmath {
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

// e^x - 1 for |x| <= 0.7: the Taylor sum without its 1, from the smallest term up.
double expm1_series(double x) {
  double term = x, sum = 0, terms[18];
  for (int i = 0; i < 18; ++i) {
    terms[i] = term;
    term = term * x / (i + 2);
  }
  for (int i = 17; i >= 0; --i) sum += terms[i];
  return sum;
}

// 2 atanh(z) = log((1 + z) / (1 - z)) for |z| <= 0.172.
double log_series(double z) {
  double power = z, terms[12], sum = 0;
  for (int i = 0; i < 12; ++i) {
    terms[i] = power / (2 * i + 1);
    power = power * (z * z);
  }
  for (int i = 11; i >= 0; --i) sum += terms[i];
  return 2 * sum;
}

// erf(a) for a from 0 to 2: 2/sqrt(pi) e^-a^2 (a + 2 a^3 / 3 + 4 a^5 / 15 + ...): every term
// positive.
double erf_series(double a) {
  double term = a, sum = 0, terms[60];
  for (int i = 0; i < 60; ++i) {
    terms[i] = term;
    term = term * (2 * (a * a)) / (2 * i + 3);
  }
  for (int i = 59; i >= 0; --i) sum += terms[i];
  return kTwoOverSqrtPi * exp(-(a * a)) * sum;
}

// erfc(a) e^(a^2) for a >= 1 by its continued fraction: 1 / sqrt(pi) / (a + (1/2)/(a + 1/(a +
// (3/2)/(a + ...
double erfc_fraction(double a) {
  double fraction = a;
  for (int i = 200; i >= 1; --i) fraction = a + 0.5 * i / fraction;
  return 0.5 * kTwoOverSqrtPi / fraction;
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
  // Beyond these limits the result is infinite or 0 anyway, and n fits an exponent.
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

double expm1(double x) {
  return x > -0.5 && x < 0.5 ? expm1_series(x) : exp(x) - 1;
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
  const double n = static_cast<double>(e);
  return n * kLn2High + (log_series((m - 1) / (m + 1)) + n * kLn2Low);
}

double log1p(double x) {
  return x > -0.29 && x < 0.41 ? log_series(x / (2 + x)) : log(1 + x);
}

double tanh(double x) {
  if (x != x) return x;
  const double a = x < 0 ? -x : x;
  double t;
  if (a < 0.35) {
    const double m = expm1_series(2 * a);
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
    y = erf_series(a);
  } else if (a < 6) {
    y = 1 - exp(-(a * a)) * erfc_fraction(a);
  }
  return sign_bit(x) ? -y : y;
}

// The square is computed in two parts: an error in the last digit of x^2 would become x^2 times as
// large in the result.
double exp_half_square(double x) {
  if (x != x) return x;
  const double a = x < 0 ? -x : x;
  if (a > 40) return 0;
  const double h = bit_cast<double>(bit_cast<int64_t>(a) & ~int64_t{0x7ffffff});  // h * h is exact
  return exp(-0.5 * (h * h)) * exp(-0.5 * ((a - h) * (a + h)));
}

double normal_cdf(double x) {
  const double u = x * 0.70710678118654752440, a = u < 0 ? -u : u;
  if (!(a >= 1)) return 0.5 + 0.5 * erf(u);
  const double tail = 0.5 * exp_half_square(x) * erfc_fraction(a);
  return x < 0 ? tail : 1 - tail;
}

double sin(double x) {
  return sin_quarter(x, 0);
}
double cos(double x) {
  return sin_quarter(x, 1);
}

}  // namespace loom::core::dmath
