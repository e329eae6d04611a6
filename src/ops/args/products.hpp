// Products of packed weights and of activations, and the packing of weights. ops/args.hpp defines
// the letters, ops/operands.hpp the members of a struct.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// y[R,N] = act(x[R,K] . w[N,K]^T + bias[N]). w is R16. Integer-path dtypes with q8 set compute in
// integers from q8 (rule 3); all else computes from x in float (rule 2).
struct MatmulArgs {
  Tensor x, w, bias, y;
  Q8Rows q8;
  Activation activation = Activation::linear;
  bool use_q8 = false;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    if (!self.use_q8) reads(f, self.x);
    reads(f, self.w, self.bias);
    writes(f, self.y);
  }
  static void memory(const auto& self, auto&& f) {
    if (self.use_q8) f(self.q8, Access::read);
  }
  int64_t work() const { return y.rows() * y.cols() * x.cols() / 2; }
};

// q = rows of x quantized per block of 32.
struct QuantizeRowsArgs {
  Tensor x;
  Q8Rows q;

  static constexpr Gradient kGradient = Gradient::none;
  static constexpr bool kF32Only = true;
  static void operands(auto& self, auto&& f) { reads(f, self.x); }
  static void memory(const auto& self, auto&& f) { f(self.q, Access::write); }
};

// w (R16, dtype of its own) = pack of plain src[N,K]. stochastic: each value is rounded up or down
// with the probability that makes its mean exact; value i draws number i of stream (seed, stream)
// at step `*step` (as in RandomArgs). ranges (f32; may be empty): the range from which the scale of
// each row (of the tensor, depending on scope) was computed, read and updated. A scale is kept
// while its range shrinks by at most `band` (FrozenRanges in dtype/r16/r16.hpp). [N], or [N, 2] for
// dtypes with a zero point; zeros mean no range yet. With `rows` (scope per_row; not for dtypes
// with a scale of the tensor) w is already packed, and those rows of src replace theirs.
struct PackArgs {
  Tensor src, w;
  ScaleScope scope = ScaleScope::per_row;
  bool stochastic = false;
  uint64_t seed = 0, stream = 0;
  Tensor step;
  Tensor ranges;
  float band = 0.125f;
  Tensor rows;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.src, self.step, self.rows);
    f(self.w, written(!self.rows.empty()));
    updates(f, self.ranges);
  }
  int64_t work() const {
    const int64_t count = rows.empty() ? src.rows() : rows.shape.count();
    return 16 * count * src.cols();
  }
};

// Plain -> plain or R16 -> plain f32; either side may be any float dtype of 16 bits or more.
struct ConvertArgs {
  Tensor x, y;
  Tensor rows;

  static constexpr Gradient kGradient = Gradient::none;
  static constexpr bool kOwnTypes = true;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.rows);
    writes(f, self.y);
  }
  int64_t work() const { return rows.empty() ? y.shape.count() : rows.shape.count() * y.cols(); }
};

// y[M,N] (+)= A B over plain matrices, K summed under rule 2. a is A [M,K], or A^T [K,M] when
// a_transposed; b is B [K,N], or B^T [N,K] when b_transposed.
struct GemmArgs {
  Tensor a, b, y;
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.a, self.b);
    f(self.y, written(self.accumulate));
  }
  int64_t work() const {
    const int64_t k = a_transposed ? a.rows() : a.cols();
    return y.rows() * y.cols() * k / 2;
  }
};

// dx[R,K] (+)= dy[R,N] . w[N,K], N summed under rule 2. w is R16 and decoded as in matmul.
struct MatmulDxArgs {
  Tensor dy, w, dx;
  bool accumulate = false;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.w);
    f(self.dx, written(self.accumulate));
  }
  int64_t work() const { return dx.rows() * dx.cols() * dy.cols() / 2; }
};

// y[R,K] = sum over n of (x[r,n] - c[k,n])^2, one chain per rule 2. c is R16.
struct SquaredDistanceArgs {
  Tensor x, c, y;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.c);
    writes(f, self.y);
  }
  int64_t work() const { return y.shape.count() * x.cols() / 2; }
};

}  // namespace loom::core
