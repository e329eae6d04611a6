// The elementary functions of the canonical mode: own polynomials in a fixed order, unfused,
// without libm. Each is a template over a lane type, float or a vector of floats (GCC vector
// extension). So scalar and SIMD code share every operation and therefore every bit. The
// coefficients are the single-precision minimax sets of the Cephes library (S. Moshier). For
// double, the type of the gradient oracle, exp, log, tanh and the normal distribution come from
// base/dmath. Functions built on them have constants of that precision.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/inline.hpp"
#include "base/numbers/dmath.hpp"

namespace loom::core::fmath {

// The integer lane type that belongs to a float lane type.
template <class F>
struct IntOf {
  using type = decltype(F{} < F{});  // vectors: a comparison yields the integer vector
};
template <>
struct IntOf<float> {
  using type = int32_t;
};
template <>
struct IntOf<double> {
  using type = int64_t;
};
template <class F>
using Int = typename IntOf<F>::type;

template <class F>
LOOM_INLINE Int<F> bits(F x) {
  Int<F> i;
  std::memcpy(&i, &x, sizeof(x));
  return i;
}
template <class F>
LOOM_INLINE F from_bits(Int<F> i) {
  F x;
  std::memcpy(&x, &i, sizeof(x));
  return x;
}
template <class F>
LOOM_INLINE F splat(float v) {
  return F{} + v;
}

// A constant in the precision of the lane type.
template <class F>
using Number = std::conditional_t<std::is_same_v<F, double>, double, float>;
template <class F>
LOOM_INLINE constexpr Number<F> number(double v) {
  return static_cast<Number<F>>(v);
}

// min and max in the form that x86 and WASM share: the second operand if either is NaN.
template <class F>
LOOM_INLINE F min(F a, F b) {
  return a < b ? a : b;
}
template <class F>
LOOM_INLINE F max(F a, F b) {
  return a > b ? a : b;
}
template <class F>
LOOM_INLINE F abs(F x) {
  return from_bits<F>(bits(x) & 0x7fffffff);
}
template <>
LOOM_INLINE double abs(double x) {
  return __builtin_fabs(x);
}

// Correctly rounded, as in IEEE 754.
template <class F>
LOOM_INLINE F sqrt(F x) {
  if constexpr (std::is_same_v<F, float>) {
    return __builtin_sqrtf(x);
  } else if constexpr (std::is_same_v<F, double>) {
    return __builtin_sqrt(x);
  } else {
    for (size_t i = 0; i < sizeof(F) / sizeof(float); ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
  }
}

// Nearest integer, ties to even, as a float; |x| < 2^22.
template <class F>
LOOM_INLINE F round_even(F x) {
  const F magic = splat<F>(12582912.0f);  // 1.5 * 2^23
  return (x + magic) - magic;
}
// The same as an integer.
template <class F>
LOOM_INLINE Int<F> round_to_int(F x) {
  return bits(x + 12582912.0f) - 0x4B400000;
}

// 2^n for integer n in [-126, 127].
template <class F>
LOOM_INLINE F exp2_int(Int<F> n) {
  return from_bits<F>((n + 127) << 23);
}

// e * 2^n for e in [0.5, 2] and n in [-152, 128], rounded once; nf is n as a float. A backend may
// specialize it for its lane type if the processor has an instruction with the same result.
template <class F>
struct ScaleExp {
  LOOM_INLINE static F run(F e, Int<F> n, F) {
    // Two steps keep the exponent in range at both ends.
    const Int<F> half = n >> 1;
    return (e * exp2_int<F>(half)) * exp2_int<F>(n - half);
  }
};

// e^r - 1 for |r| <= log(2) / 2, and slightly more: 0.36.
template <class F>
LOOM_INLINE F expm1_reduced(F r) {
  F p = splat<F>(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return p * (r * r) + r;
}

// The rest of x after nf times log(2).
template <class F>
LOOM_INLINE F less_logs_of_2(F x, F nf) {
  return (x - nf * 0.693359375f) - nf * -2.12194440e-4f;
}

// e^x. Overflows to infinity above 88.73, underflows gradually to 0 below -87.3; NaN stays NaN.
template <class F>
LOOM_INLINE F exp(F x) {
  F y = x > 89.0f ? splat<F>(89.0f) : x;
  y = y < -104.0f ? splat<F>(-104.0f) : y;
  const Int<F> n = round_to_int<F>(y * 1.44269504088896341f);
  const F nf = round_even<F>(y * 1.44269504088896341f);
  return ScaleExp<F>::run(expm1_reduced<F>(less_logs_of_2<F>(y, nf)) + 1.0f, n, nf);
}
template <>
LOOM_INLINE double exp(double x) {
  return dmath::exp(x);
}

// e^x - 1 for x <= 0, precise near 0, where e^x loses the digits: 2^n (e^r - 1) + (2^n - 1). -1 to
// the last bit below -32.
template <class F>
LOOM_INLINE F expm1_negative(F x) {
  const F y = x < -32.0f ? splat<F>(-32.0f) : x;
  const F nf = round_even<F>(y * 1.44269504088896341f);
  const F power = exp2_int<F>(round_to_int<F>(y * 1.44269504088896341f));
  return power * expm1_reduced<F>(less_logs_of_2<F>(y, nf)) + (power - 1.0f);
}
template <>
LOOM_INLINE double expm1_negative(double x) {
  return dmath::expm1(x);
}

// e^(-x^2 / 2). The square is computed in two parts: h^2, and the excess of x over h. An error in
// the last digit of x^2 would become x^2 times as large in the result.
template <class F>
LOOM_INLINE F exp_half_square(F wide) {
  const F a = min<F>(abs(wide), splat<F>(14.5f));  // beyond it the result is 0
  const F h = from_bits<F>(bits(a) & ~0xfff);      // 12 digits, so h * h is exact
  const F high = (h * h) * -0.5f, low = ((a - h) * (a + h)) * -0.5f;
  const F nf = round_even<F>((high + low) * 1.44269504088896341f);
  const Int<F> n = round_to_int<F>((high + low) * 1.44269504088896341f);
  const F r = less_logs_of_2<F>(high, nf) + low;
  return ScaleExp<F>::run(expm1_reduced<F>(r) + 1.0f, n, nf);
}
template <>
LOOM_INLINE double exp_half_square(double x) {
  return dmath::exp_half_square(x);
}

// log((1 + m) 2^ef) for 1 + m between sqrt(1/2) and sqrt(2).
template <class F>
LOOM_INLINE F log_1p_reduced(F m, F ef) {
  const F z = m * m;
  F p = splat<F>(7.0376836292e-2f);
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  F y = (p * m) * z;
  y = y + ef * -2.12194440e-4f;
  y = y - z * 0.5f;
  return (m + y) + ef * 0.693359375f;
}

// Natural logarithm. 0 -> -inf, negative -> NaN, inf -> inf.
template <class F>
LOOM_INLINE F log(F x) {
  const F tiny = splat<F>(1.17549435e-38f);
  const auto subnormal = x < tiny;
  const F scaled = subnormal ? x * 8388608.0f : x;  // 2^23
  Int<F> i = bits(scaled);
  Int<F> e = ((i >> 23) & 255) - 126;
  e = subnormal ? e - 23 : e;
  F m = from_bits<F>((i & 0x007fffff) | 0x3f000000);  // in [0.5, 1)
  const auto low = m < 0.707106781186547524f;
  e = low ? e - 1 : e;
  m = (low ? m + m : m) - 1.0f;
  F ef;
  if constexpr (std::is_same_v<F, float>) {
    ef = static_cast<float>(e);
  } else {
    ef = __builtin_convertvector(e, F);
  }
  F result = log_1p_reduced<F>(m, ef);
  const F infinity = from_bits<F>(Int<F>{} + 0x7f800000);
  const F nan = from_bits<F>(Int<F>{} + 0x7fc00000);
  result = x == infinity ? infinity : result;
  result = x < 0.0f ? nan : result;
  result = x == 0.0f ? -infinity : result;
  return x == x ? result : x;
}
template <>
LOOM_INLINE double log(double x) {
  return dmath::log(x);
}

// log(1 + t) for t in [0, 1], precise near 0, where 1 + t loses the digits of t. From sqrt(2) - 1
// on it is log 2 + log(1 + (t - 1) / 2).
template <class F>
LOOM_INLINE F log1p_unit(F t) {
  const auto large = t > 0.414213562373095049f;
  const F m = large ? (t - 1.0f) * 0.5f : t;
  return log_1p_reduced<F>(m, large ? splat<F>(1.0f) : splat<F>(0.0f));
}
template <>
LOOM_INLINE double log1p_unit(double t) {
  return dmath::log1p(t);
}

// 0 below -88.73, where e^-x overflows. The largest value that is lost is 3e-39.
template <class F>
LOOM_INLINE F sigmoid(F x) {
  return 1.0f / (1.0f + exp<F>(-x));
}

template <class F>
LOOM_INLINE F silu(F x) {
  return x / (1.0f + exp<F>(-x));
}

template <class F>
LOOM_INLINE F tanh(F x) {
  const F a = abs(x);
  const F z = x * x;
  F p = splat<F>(-5.70498872745e-3f);
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const F small = (p * z) * x + x;
  const F large = 1.0f - 2.0f / (exp<F>(a + a) + 1.0f);
  const F signed_large = x < 0.0f ? -large : large;
  return a < 0.625f ? small : (x == x ? signed_large : x);
}
template <>
LOOM_INLINE double tanh(double x) {
  return dmath::tanh(x);
}

// erf(x) for |x| < 1; z = x^2.
template <class F>
LOOM_INLINE F erf_small(F x, F z) {
  F t = splat<F>(7.853861353153693e-5f);
  t = t * z - 8.010193625184903e-4f;
  t = t * z + 5.188327685732524e-3f;
  t = t * z - 2.685381193529856e-2f;
  t = t * z + 1.128358514861418e-1f;
  t = t * z - 3.761262582423300e-1f;
  t = t * z + 1.128379165726710f;
  return x * t;
}

// erfc(a) for a >= 1; e = e^(-a^2).
template <class F>
LOOM_INLINE F erfc_large(F a, F e) {
  const F q = 1.0f / a;
  const F y = q * q;
  F p = splat<F>(2.326819970068386e-2f);
  p = p * y - 1.387039388740657e-1f;
  p = p * y + 3.687424674597105e-1f;
  p = p * y - 5.824733027278666e-1f;
  p = p * y + 6.210004621745983e-1f;
  p = p * y - 4.944515323274145e-1f;
  p = p * y + 3.404879937665872e-1f;
  p = p * y - 2.741127028184656e-1f;
  p = p * y + 5.638259427386472e-1f;
  F r = splat<F>(-1.047766399936249e1f);
  r = r * y + 1.297719955372516e1f;
  r = r * y - 7.495518717768503f;
  r = r * y + 2.921019019210786f;
  r = r * y - 1.015265279202700f;
  r = r * y + 4.218463358204948e-1f;
  r = r * y - 2.820767439740514e-1f;
  r = r * y + 5.641895067754075e-1f;
  return (e * q) * (a < 2.0f ? p : r);
}

// The normal distribution, (1 + erf(x / sqrt(2))) / 2, precise in its lower tail.
template <class F>
LOOM_INLINE F normal_cdf(F x) {
  const F u = x * number<F>(0.70710678118654752);
  const F a = abs(u);
  const F small = 0.5f + 0.5f * erf_small<F>(u, u * u);
  const F tail = 0.5f * erfc_large<F>(a, exp_half_square<F>(x));
  const F large = x < 0.0f ? tail : 1.0f - tail;
  return a < 1.0f ? small : (x == x ? large : x);
}
template <>
LOOM_INLINE double normal_cdf(double x) {
  return dmath::normal_cdf(x);
}

// log(1 + e^x), precise at both ends.
template <class F>
LOOM_INLINE F softplus(F x) {
  return max<F>(x, splat<F>(0.0f)) + log1p_unit<F>(exp<F>(-abs(x)));
}

// x (1 + tanh(u)) / 2 = x / (1 + e^-2u): the right side keeps its digits as tanh nears -1. An error
// of u in its last place moves the result 2 |u| times as far.
template <class F>
LOOM_INLINE F gelu_tanh(F x) {
  const F u2 = number<F>(1.59576912160573071) * (x + number<F>(0.044715) * ((x * x) * x));
  return x / (1.0f + exp<F>(-u2));
}

template <class F>
LOOM_INLINE F gelu_erf(F x) {
  return x * normal_cdf<F>(x);
}

// x tanh(log(1 + e^x)) = x n / (n + 2) with n = e^x (e^x + 2): precise at both ends, and n / (n +
// 2) is 1 from 20 on in either precision.
template <class F>
LOOM_INLINE F mish(F x) {
  const F w = exp<F>(x > 20.0f ? splat<F>(20.0f) : x);
  const F n = w * (w + 2.0f);
  return x * (n / (n + 2.0f));
}

// alpha 1
template <class F>
LOOM_INLINE F elu(F x) {
  return x > 0.0f ? x : expm1_negative<F>(x);
}

// x clip(x + 3, 0, 6) / 6, divided first so that large x do not overflow.
template <class F>
LOOM_INLINE F hard_swish(F x) {
  const F clipped = max<F>(min<F>(x + 3.0f, splat<F>(6.0f)), splat<F>(0.0f));
  return x * (clipped / 6.0f);
}

}  // namespace loom::core::fmath
