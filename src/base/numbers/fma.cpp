#include "base/numbers/fma.hpp"

#include <bit>

namespace loom::core {
namespace {

__extension__ using Wide = unsigned __int128;

// A finite number other than 0: (-1)^negative * significand * 2^exponent.
struct Parts {
  Wide significand;
  int exponent;
  bool negative;
};

constexpr int kFraction = 52;   // bits of a double below its leading one
constexpr int kLowest = -1074;  // exponent of the smallest subnormal number
constexpr int kTop = 125;       // position of the leading bit of sums: two below the top of a Wide

bool finite(double x) {
  return x - x == 0.0;
}

Parts parts_of(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  const uint64_t fraction = bits & ((uint64_t{1} << kFraction) - 1);
  const int field = static_cast<int>(bits >> kFraction & 0x7ff);
  const bool negative = bits >> 63 != 0;
  if (field == 0) return {fraction, kLowest, negative};
  return {fraction | uint64_t{1} << kFraction, field - 1 + kLowest, negative};
}

int leading_bit(Wide x) {
  const auto high = static_cast<uint64_t>(x >> 64), low = static_cast<uint64_t>(x);
  return high != 0 ? 127 - std::countl_zero(high) : 63 - std::countl_zero(low);
}

// Moves the leading bit to kTop.
void normalize(Parts& x) {
  const int shift = kTop - leading_bit(x.significand);
  x.significand = shift >= 0 ? x.significand << shift : x.significand >> -shift;
  x.exponent -= shift;
}

// x / 2^shift; the last bit is set if bits were lost.
Wide shift_right(Wide x, int shift) {
  if (shift == 0) return x;
  if (shift > 127) return x != 0 ? 1 : 0;
  const Wide lost = x & ((Wide{1} << shift) - 1);
  return x >> shift | (lost != 0 ? 1 : 0);
}

// The sum of two numbers with their leading bits at kTop. If it is 0, the significand is 0.
Parts add(Parts a, Parts b) {
  if (a.exponent < b.exponent) return add(b, a);
  b.significand = shift_right(b.significand, a.exponent - b.exponent);
  if (a.negative == b.negative) {
    a.significand += b.significand;
  } else if (a.significand >= b.significand) {
    a.significand -= b.significand;
  } else {
    a.significand = b.significand - a.significand;
    a.negative = b.negative;
  }
  return a;
}

// The nearest double, ties to even.
double rounded(const Parts& x) {
  const int leading = leading_bit(x.significand);
  // The exponent of the last bit kept: subnormal numbers keep fewer.
  const int target_exponent = x.exponent + leading - kFraction;
  const int last = target_exponent < kLowest ? kLowest : target_exponent;
  const int drop = last - x.exponent;
  Wide kept = x.significand;
  if (drop > 127) {
    kept = 0;
  } else if (drop > 0) {
    const Wide half = Wide{1} << (drop - 1), lost = kept & ((Wide{1} << drop) - 1);
    kept >>= drop;
    if (lost > half || (lost == half && (kept & 1) != 0)) ++kept;
  } else {
    kept <<= -drop;
  }
  const uint64_t sign = x.negative ? uint64_t{1} << 63 : 0;
  // A carry into the next power of two, and from subnormal to normal, gives the right sum.
  if (last - kLowest >= 0x7fe) return std::bit_cast<double>(sign | uint64_t{0x7ff} << kFraction);
  const uint64_t field = static_cast<uint64_t>(last - kLowest) << kFraction;
  return std::bit_cast<double>(sign | (field + static_cast<uint64_t>(kept)));
}

}  // namespace

double fused_exact(double a, double b, double c) {
  if (!finite(a) || !finite(b)) return a * b + c;
  if (!finite(c)) return c + c;
  if (a == 0.0 || b == 0.0) return a * b + c;
  if (c == 0.0) return a * b;
  const Parts x = parts_of(a), y = parts_of(b);
  Parts product{x.significand * y.significand, x.exponent + y.exponent, x.negative != y.negative};
  Parts term = parts_of(c);
  normalize(product);
  normalize(term);
  const Parts sum = add(product, term);
  return sum.significand == 0 ? 0.0 : rounded(sum);
}

}  // namespace loom::core
