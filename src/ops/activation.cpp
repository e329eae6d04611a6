#include "ops/activation.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kNames[] = {"linear",    "relu",     "leaky_relu", "relu2",   "silu",
                                       "gelu_tanh", "gelu_erf", "tanh",       "sigmoid", "mish",
                                       "softplus",  "elu",      "hard_swish"};
static_assert(std::size(kNames) == kActivations);

}  // namespace

std::string_view activation_name(Activation kind) {
  return kNames[static_cast<size_t>(kind)];
}

Result<Activation> parse_activation(std::string_view name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Activation>(i);
  }
  std::string all;
  for (std::string_view n : kNames) all += cat(all.empty() ? "" : ", ", n);
  return invalid(cat("unknown activation '", printable(name), "'; known are ", all));
}

}  // namespace loom::core
