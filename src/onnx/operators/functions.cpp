// See functions.hpp.
#include "onnx/operators/functions.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "base/numbers/dmath.hpp"

namespace loom::core::evaluate {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// x^n by squares.
double whole_power(double x, int64_t n) {
  double out = 1, square = x;
  for (auto rest = static_cast<uint64_t>(n < 0 ? -n : n); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) out *= square;
    square *= square;
  }
  return n < 0 ? 1 / out : out;
}

}  // namespace

double atan(double x) {
  const double a = std::abs(x);
  if (!(a == a)) return x;
  const bool beyond = a > 1;
  double t = beyond ? 1 / a : a;
  // atan t = 2 atan(t / (1 + sqrt(1 + t^2))): three times leaves t below 0.1.
  for (int i = 0; i < 3; ++i) t = t / (1 + std::sqrt(1 + t * t));
  const double square = t * t;
  double sum = 0;
  for (int k = 21; k >= 1; k -= 2) sum = 1.0 / k - square * sum;
  const double angle = 8 * t * sum;
  return std::copysign(beyond ? std::numbers::pi / 2 - angle : angle, x);
}

double asin(double x) {
  if (std::abs(x) > 1) return kNoNumber;
  return atan(x / std::sqrt((1 - x) * (1 + x)));
}
double acos(double x) {
  if (std::abs(x) > 1) return kNoNumber;
  return 2 * atan(std::sqrt((1 - x) / (1 + x)));
}
double sinh(double x) {
  const double e = dmath::expm1(std::abs(x));
  return std::copysign(e == kInfinite ? e : (e + e / (e + 1)) / 2, x);
}
double cosh(double x) {
  const double e = dmath::exp(std::abs(x));
  return (e + 1 / e) / 2;
}
double asinh(double x) {
  const double a = std::abs(x);
  if (a > 1e150) return std::copysign(dmath::log(a) + std::numbers::ln2, x);
  return std::copysign(dmath::log1p(a + a * a / (1 + std::sqrt(a * a + 1))), x);
}
double acosh(double x) {
  if (x < 1) return kNoNumber;
  if (x > 1e150) return dmath::log(x) + std::numbers::ln2;
  const double t = x - 1;
  return dmath::log1p(t + std::sqrt(2 * t + t * t));
}
double atanh(double x) {
  const double a = std::abs(x);
  if (a > 1) return kNoNumber;
  return std::copysign(a == 1 ? kInfinite : dmath::log1p(2 * a / (1 - a)) / 2, x);
}
double tan(double x) {
  return dmath::sin(x) / dmath::cos(x);
}
double log_of(double x) {
  if (x == 0) return -kInfinite;
  return x < 0 ? kNoNumber : dmath::log(x);
}

double pow(double x, double y) {
  constexpr double kMaxSquares = 1024;
  if (y == 0 || x == 1) return 1;
  if (!(x == x) || !(y == y)) return kNoNumber;
  const bool whole = std::floor(y) == y;
  const bool odd = whole && std::abs(y) < 9007199254740992.0 && std::fmod(y, 2) != 0;
  if (whole && std::abs(y) <= kMaxSquares && std::abs(x) < kInfinite) {
    return whole_power(x, static_cast<int64_t>(y));
  }
  const double sign = std::signbit(x) && odd ? -1.0 : 1.0;
  if (x == 0) return y > 0 ? sign * 0.0 : sign * kInfinite;
  if (x < 0 && !whole && x != -kInfinite) return kNoNumber;
  if (y == 0.5 && x >= 0) return std::sqrt(x);
  return sign * dmath::exp(y * dmath::log(std::abs(x)));
}

}  // namespace loom::core::evaluate
