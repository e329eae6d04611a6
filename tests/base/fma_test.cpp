// The exact emulation of fused multiply-add against the C library's fma, which is correctly
// rounded. LOOM_FMA_TRIPLES=100000000 tries as many random triples as the name says.
#include "base/numbers/fma.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "base/numbers/rng.hpp"

namespace loom::core {
namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// The same number, or both NaN.
template <class T>
bool same(T a, T b) {
  return std::bit_cast<BitsOf<T>>(a) == std::bit_cast<BitsOf<T>>(b) || (a != a && b != b);
}

template <class T>
void expect_exact(T a, T b, T c) {
  const T got = fused_exact(a, b, c), want = std::fma(a, b, c);
  if (!same(got, want)) {
    ADD_FAILURE() << std::hexfloat << "fused(" << a << ", " << b << ", " << c << ") is " << got
                  << ", should be " << want;
  }
  if (!same(fused(a, b, c), want)) ADD_FAILURE() << "the instruction differs";
}

// Ends of every range, numbers whose products and sums are halfway cases, and NaN and infinities.
template <class T>
std::vector<T> awkward() {
  using Limits = std::numeric_limits<T>;
  const T ulp = Limits::epsilon();
  std::vector<T> values = {T(0),
                           Limits::denorm_min(),
                           Limits::denorm_min() * 3,
                           Limits::min() - Limits::denorm_min(),
                           Limits::min(),
                           Limits::min() * (1 + ulp),
                           ulp,
                           ulp / 2,
                           T(1) / 3,
                           T(0.5),
                           1 - ulp / 2,
                           T(1),
                           1 + ulp,
                           1 + 2 * ulp,
                           1 + 3 * ulp,
                           T(1.5),
                           2 - ulp,
                           1 / ulp,
                           1 / ulp + 1,
                           std::sqrt(Limits::min()),
                           std::sqrt(Limits::max()),
                           Limits::max() / 2,
                           Limits::max(),
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  return values;
}

uint64_t triples() {
  const char* setting = std::getenv("LOOM_FMA_TRIPLES");
  return setting != nullptr ? std::strtoull(setting, nullptr, 10) : 1'000'000;
}

// Two random 64-bit words of draw `index`.
std::pair<uint64_t, uint64_t> words(uint64_t stream, uint64_t index) {
  const auto r = philox(7, stream, index);
  return {uint64_t{r[0]} << 32 | r[1], uint64_t{r[2]} << 32 | r[3]};
}

// A number of any bits.
template <class T>
T any(uint64_t word) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(word));
}

template <class T>
class Fma : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Fma, Types);

TYPED_TEST(Fma, RoundsOnceOnAwkwardNumbers) {
  const auto values = awkward<TypeParam>();
  for (const TypeParam a : values) {
    for (const TypeParam b : values) {
      for (const TypeParam c : values) expect_exact(a, b, c);
    }
  }
}

TYPED_TEST(Fma, RoundsOnceOnRandomBits) {
  for (uint64_t i = 0; i < triples(); ++i) {
    const auto [first, second] = words(1, i);
    const auto [third, unused] = words(2, i);
    expect_exact(any<TypeParam>(first), any<TypeParam>(second), any<TypeParam>(third));
  }
}

// Sums near the product, far below it, at its last bit, and nearly cancelled: random bits rarely
// give any of these.
TYPED_TEST(Fma, RoundsOnceWhereProductAndSumMeet) {
  using T = TypeParam;
  constexpr int kDigits = std::numeric_limits<T>::digits;
  constexpr int kRange = std::numeric_limits<T>::max_exponent / 2;
  for (uint64_t i = 0; i < triples(); ++i) {
    const auto [first, second] = words(3, i);
    const auto [third, how] = words(4, i);
    const auto mantissa = [](uint64_t word) {
      // Few bits make ties; all bits make everything else.
      const int bits = 2 + static_cast<int>(word >> 58) % (kDigits - 1);
      const uint64_t kept = (word & ((uint64_t{1} << bits) - 1)) | uint64_t{1} << bits;
      return std::ldexp(static_cast<T>(kept), -bits);
    };
    const T a = std::ldexp(mantissa(first), static_cast<int>(how & 0xffff) % kRange - kRange / 2);
    const T b =
        std::ldexp(mantissa(second), static_cast<int>(how >> 16 & 0xffff) % kRange - kRange);
    const int shift = static_cast<int>(how >> 32 & 0xff) % (4 * kDigits) - 2 * kDigits;
    const T near = std::ldexp(a * b, shift);
    const T steps = static_cast<T>(static_cast<int>(how >> 40 & 7) - 3);
    const T c = (how >> 63) != 0 ? -(near + steps * std::ldexp(near, -kDigits + 1))
                                 : std::ldexp(mantissa(third), std::ilogb(near));
    expect_exact(a, b, c);
    expect_exact(a, b, -c);
  }
}

}  // namespace
}  // namespace loom::core
