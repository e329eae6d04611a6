// Value-wise ops: activations, sums and products of two tensors, random numbers, fills.
// ops/args.hpp defines the letters, ops/operands.hpp the members of a struct.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

enum class UnaryKind : uint8_t {
  linear,
  relu,
  leaky_relu,
  relu2,
  silu,
  gelu_tanh,
  gelu_erf,
  tanh,
  sigmoid,
  mish,
  softplus,
  elu,
  hard_swish,
  exp,
  log,
  sqrt,
  neg,
  abs,
  square,
  reciprocal,
  step  // 1 if x >= 0, else 0; no gradient
};

struct UnaryArgs {
  Tensor x, y;
  UnaryKind kind = UnaryKind::linear;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.y);
  }
};

enum class BinaryKind : uint8_t { add, sub, mul, div, max, min };

// y = a op b. b has the shape of a, or is one row (for all rows of a), or one column (one value per
// row of a). It may also be one value.
struct BinaryArgs {
  Tensor a, b, y;
  BinaryKind kind = BinaryKind::add;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.a, self.b);
    writes(f, self.y);
  }
  int64_t work() const { return y.shape.count(); }
};

// y = act(gate) * up
struct GatedArgs {
  Tensor gate, up, y;
  Activation activation = Activation::silu;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.gate, self.up);
    writes(f, self.y);
  }
  int64_t work() const { return y.shape.count(); }
};

struct FillArgs {
  Tensor y;
  float value = 0.0f;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) { writes(f, self.y); }
  int64_t work() const { return y.shape.count(); }
};

enum class RandomKind : uint8_t { uniform, normal, gumbel };

// y = counter-based random numbers: value i of stream (seed, stream) at step `*step`. step is a
// tensor of one value, an integer below 2^24; empty means step 0. gumbel: -log(-log(u)).
struct RandomArgs {
  Tensor y, step;
  uint64_t seed = 0;
  uint64_t stream = 0;
  RandomKind kind = RandomKind::uniform;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.step);
    writes(f, self.y);
  }
  int64_t work() const { return 16 * y.shape.count(); }
};

// dx = dy * f'. x holds the input of f or, with from_output, its output (only relu, leaky_relu,
// tanh, sigmoid, exp, sqrt, reciprocal, linear). At a kink the derivative is that of the left side
// for relu, relu2 and abs (0, 0, 0), and 0.01 for leaky_relu.
struct UnaryDxArgs {
  Tensor x, dy, dx;
  UnaryKind kind = UnaryKind::linear;
  bool from_output = false;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.dy);
    writes(f, self.dx);
  }
  int64_t work() const { return dy.shape.count(); }
};

// y = act(gate) * up: dgate = dy * up * act'(gate), dup = dy * act(gate).
struct GatedDxArgs {
  Tensor gate, up, dy, dgate, dup;
  Activation activation = Activation::silu;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.gate, self.up, self.dy);
    writes(f, self.dgate, self.dup);
  }
  int64_t work() const { return 4 * dy.shape.count(); }
};

}  // namespace loom::core
