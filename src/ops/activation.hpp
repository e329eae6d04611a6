// Activations as templates over a lane type: the definition both the reference and the SIMD
// backends use.
#pragma once

#include "ops/args.hpp"
#include "ops/fmath.hpp"

namespace loom {

template <class F>
LOOM_INLINE F activate(Activation kind, F x) {
  const F zero{};
  switch (kind) {
    case Activation::linear: return x;
    case Activation::relu: return x > zero ? x : zero;
    case Activation::leaky_relu: return x < zero ? x * 0.01f : x;
    case Activation::relu2: return x > zero ? x * x : zero;
    case Activation::silu: return fmath::silu<F>(x);
    case Activation::gelu_tanh: return fmath::gelu_tanh<F>(x);
    case Activation::gelu_erf: return fmath::gelu_erf<F>(x);
    case Activation::tanh: return fmath::tanh<F>(x);
    case Activation::sigmoid: return fmath::sigmoid<F>(x);
  }
  return x;
}

std::string_view activation_name(Activation kind);
Result<Activation> parse_activation(std::string_view name);

}  // namespace loom
