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
  const double n = round_even(x * 1.44269504088896338700);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  double term = 1, sum = 0, terms[18];
  for (int i = 0; i < 18; ++i) {
    terms[i] = term;
    term = term * r / (i + 1);
  }
  for (int i = 17; i >= 0; --i) sum += terms[i];
  return sum * power_of_two(static_cast<int64_t>(n));
}

double log(double x) {
  int64_t bits = bit_cast<int64_t>(x);
  int64_t e = (bits >> 52) - 1023;
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

double sin(double x) {
  return sin_quarter(x, 0);
}
double cos(double x) {
  return sin_quarter(x, 1);
}

}  // namespace loom::dmath
