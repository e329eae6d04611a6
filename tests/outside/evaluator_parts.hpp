// Shared parts of the evaluator's files: fields of layers by name, and functions of numbers that
// know their derivatives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "outside/evaluator.hpp"

namespace loom::core::outside {

inline int field(const LayerConfig& c, std::string_view name) {
  for (size_t i = 0; i < c.def->fields.size(); ++i) {
    if (c.def->fields[i].name == name) return static_cast<int>(i);
  }
  ADD_FAILURE() << c.def->name << " has no field " << name;
  return 0;
}
inline int64_t integer_field(const LayerConfig& c, std::string_view name) {
  return c.integer(field(c, name));
}
// Rounded to f32, as layers take it.
inline double real(const LayerConfig& c, std::string_view name) {
  return static_cast<double>(static_cast<float>(c.real(field(c, name))));
}
inline std::string_view text(const LayerConfig& c, std::string_view name) {
  return c.text(field(c, name));
}

// With derivatives of their own, so that large numbers stay numbers.
inline Var sigmoid(const Var& x) {
  const double y = 1 / (1 + std::exp(-x.value));
  return one(y, x, y * (1 - y));
}
inline Var softplus(const Var& x) {
  const double y = std::max(x.value, 0.0) + std::log1p(std::exp(-std::fabs(x.value)));
  return one(y, x, sigmoid(Var(x.value)).value);
}

inline Var activate(std::string_view name, const Var& x) {
  if (name == "linear") return x;
  if (name == "relu") return x.value > 0 ? x : Var(0);
  if (name == "leaky_relu") return x.value < 0 ? x * Var(0.01) : x;
  if (name == "relu2") return x.value > 0 ? x * x : Var(0);
  if (name == "silu") return x * sigmoid(x);
  if (name == "tanh") return tanh(x);
  if (name == "sigmoid") return sigmoid(x);
  if (name == "softplus") return softplus(x);
  if (name == "mish") return x * tanh(softplus(x));
  if (name == "elu") return x.value > 0 ? x : exp(x) - Var(1);
  if (name == "gelu_erf") return Var(0.5) * x * (Var(1) + erf(x * Var(std::sqrt(0.5))));
  if (name == "gelu_tanh") {
    const Var inside = Var(std::sqrt(2 / M_PI)) * (x + Var(0.044715) * x * x * x);
    return Var(0.5) * x * (Var(1) + tanh(inside));
  }
  ADD_FAILURE() << "unknown activation " << name;
  return x;
}

inline int64_t count(const std::vector<int64_t>& shape, size_t from = 0) {
  return std::accumulate(shape.begin() + static_cast<int64_t>(from), shape.end(), int64_t{1},
                         std::multiplies<>());
}

inline std::string below(const std::string& path, size_t i) {
  return path + "/" + std::to_string(i);
}

}  // namespace loom::core::outside
