// Derivatives of activations and of the other unary kinds, as templates over a lane type. The
// argument is the input of the function. For some functions it may be the output, if that is
// sufficient and all that was kept. These include tanh and sigmoid: their slopes near 1 are then as
// precise as the distance of the output from 1. At kinks: 0 for relu, relu2 and abs, 0.01 for
// leaky_relu.
#pragma once

#include "ops/activation.hpp"

namespace loom::core {

// Whether the output alone determines the derivative.
constexpr bool has_dx_from_output(UnaryKind kind) {
  using enum UnaryKind;
  return kind == linear || kind == relu || kind == leaky_relu || kind == tanh || kind == sigmoid ||
         kind == exp || kind == sqrt || kind == reciprocal;
}

namespace fmath {

template <class F>
LOOM_INLINE F clip(F x, float limit) {  // NaN stays NaN
  const F above = x > limit ? splat<F>(limit) : x;
  return above < -limit ? splat<F>(-limit) : above;
}

template <class F>
LOOM_INLINE F silu_dx(F x) {
  const F s = sigmoid<F>(x);
  return s * (1.0f + x * (1.0f - s));
}

// x s(v) with v = 2 sqrt(2/pi) (x + 0.044715 x^3), s the sigmoid: s (1 + x v' (1 - s)). Past 40,
// where x^2 would finally overflow, it is a constant, 0 or 1.
template <class F>
LOOM_INLINE F gelu_tanh_dx(F wide) {
  const F x = clip<F>(wide, 40.0f);
  const F z = x * x;
  const F s = sigmoid<F>(number<F>(1.59576912160573071) * (x + number<F>(0.044715) * (z * x)));
  const F dv = number<F>(1.59576912160573071) * (1.0f + number<F>(0.134145) * z);
  return s * (1.0f + (x * dv) * (1.0f - s));
}

// The normal distribution and x times its density, which is 0 in either precision past 40.
template <class F>
LOOM_INLINE F gelu_erf_dx(F wide) {
  const F x = clip<F>(wide, 40.0f);
  return normal_cdf<F>(x) + x * (number<F>(0.39894228040143268) * exp_half_square<F>(x));
}

// With w = e^x and n as in mish: n / (n + 2) + x 4 w (w + 1) / (n + 2)^2.
template <class F>
LOOM_INLINE F mish_dx(F x) {
  const F w = exp<F>(x > 20.0f ? splat<F>(20.0f) : x);
  const F n = w * (w + 2.0f);
  const F m = n + 2.0f;
  const F slope = n / m + x * ((4.0f * (w * (w + 1.0f))) / (m * m));
  return x > 20.0f ? splat<F>(1.0f) : slope;
}

template <class F>
LOOM_INLINE F hard_swish_dx(F x) {
  const F inside = x >= 3.0f ? splat<F>(1.0f) : x / 3.0f + 0.5f;
  return x <= -3.0f ? splat<F>(0.0f) : inside;
}

}  // namespace fmath

// f'(x)
template <class F>
LOOM_INLINE F activate_dx(UnaryKind kind, F x) {
  const F zero{};
  const F one = fmath::splat<F>(1.0f);
  switch (kind) {
    case UnaryKind::linear: return one;
    case UnaryKind::relu: return x > zero ? one : zero;
    case UnaryKind::leaky_relu: return x > zero ? one : zero + fmath::number<F>(0.01);
    case UnaryKind::relu2: return x > zero ? x + x : zero;
    case UnaryKind::silu: return fmath::silu_dx<F>(x);
    case UnaryKind::gelu_tanh: return fmath::gelu_tanh_dx<F>(x);
    case UnaryKind::gelu_erf: return fmath::gelu_erf_dx<F>(x);
    case UnaryKind::tanh: {
      const F t = fmath::tanh<F>(x);
      return 1.0f - t * t;
    }
    case UnaryKind::sigmoid: {
      const F s = fmath::sigmoid<F>(x);
      return s * (1.0f - s);
    }
    case UnaryKind::mish: return fmath::mish_dx<F>(x);
    case UnaryKind::softplus: return fmath::sigmoid<F>(x);
    case UnaryKind::elu: return x > zero ? one : fmath::exp<F>(x);
    case UnaryKind::hard_swish: return fmath::hard_swish_dx<F>(x);
    case UnaryKind::exp: return fmath::exp<F>(x);
    case UnaryKind::log: return 1.0f / x;
    case UnaryKind::sqrt: return 0.5f / fmath::sqrt<F>(x);
    case UnaryKind::neg: return -one;
    case UnaryKind::abs: return x > zero ? one : (x < zero ? -one : zero);
    case UnaryKind::square: return x + x;
    case UnaryKind::reciprocal: {
      const F r = 1.0f / x;
      return -(r * r);
    }
    case UnaryKind::step: return zero;
  }
  return zero;
}
template <class F>
LOOM_INLINE F activate_dx(Activation kind, F x) {
  return activate_dx<F>(static_cast<UnaryKind>(kind), x);
}

// f'(x) from y = f(x), for the kinds of has_dx_from_output; 0 for others.
template <class F>
LOOM_INLINE F activate_dx_from_output(UnaryKind kind, F y) {
  const F zero{};
  const F one = fmath::splat<F>(1.0f);
  switch (kind) {
    case UnaryKind::linear: return one;
    case UnaryKind::relu: return y > zero ? one : zero;
    case UnaryKind::leaky_relu: return y > zero ? one : zero + fmath::number<F>(0.01);
    case UnaryKind::tanh: return 1.0f - y * y;
    case UnaryKind::sigmoid: return y * (1.0f - y);
    case UnaryKind::exp: return y;
    case UnaryKind::sqrt: return 0.5f / y;
    case UnaryKind::reciprocal: return -(y * y);
    default: return zero;
  }
}
template <class F>
LOOM_INLINE F activate_dx_from_output(Activation kind, F y) {
  return activate_dx_from_output<F>(static_cast<UnaryKind>(kind), y);
}

}  // namespace loom::core
