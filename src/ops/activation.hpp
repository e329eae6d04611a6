// Activations as templates over a lane type: the shared definition for the reference and SIMD
// backends. Derivatives: activation_dx.hpp.
#pragma once

#include "ops/args.hpp"
#include "ops/fmath.hpp"

namespace loom::core {

static_assert(static_cast<int>(UnaryKind::linear) == static_cast<int>(Activation::linear) &&
                  static_cast<int>(UnaryKind::sigmoid) == static_cast<int>(Activation::sigmoid) &&
                  static_cast<int>(UnaryKind::hard_swish) ==
                      static_cast<int>(Activation::hard_swish),
              "the first kinds of unary are the activations, in their order");
constexpr int kActivations = static_cast<int>(Activation::hard_swish) + 1;
constexpr int kUnaryKinds = static_cast<int>(UnaryKind::step) + 1;

template <class F>
LOOM_INLINE F activate(Activation kind, F x) {
  const F zero{};
  switch (kind) {
    case Activation::linear: return x;
    case Activation::relu: return x > zero ? x : zero;
    case Activation::leaky_relu: return x < zero ? x * fmath::number<F>(0.01) : x;
    case Activation::relu2: return x > zero ? x * x : zero;
    case Activation::silu: return fmath::silu<F>(x);
    case Activation::gelu_tanh: return fmath::gelu_tanh<F>(x);
    case Activation::gelu_erf: return fmath::gelu_erf<F>(x);
    case Activation::tanh: return fmath::tanh<F>(x);
    case Activation::sigmoid: return fmath::sigmoid<F>(x);
    case Activation::mish: return fmath::mish<F>(x);
    case Activation::softplus: return fmath::softplus<F>(x);
    case Activation::elu: return fmath::elu<F>(x);
    case Activation::hard_swish: return fmath::hard_swish<F>(x);
  }
  return x;
}

std::string_view activation_name(Activation kind);
Result<Activation> parse_activation(std::string_view name);

}  // namespace loom::core
