// Ops that move values without arithmetic: one strided copy. It covers reshape, transpose, slice,
// flip, expand, concatenation and padding with a constant (ops/moves.hpp makes them). ops/args.hpp
// defines the letters, ops/operands.hpp the members of a struct.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// y[y_first + sum_k i_k y_step[k]] = x[x_first + sum_k i_k x_step[k]] for all i_k < extent[k], k <
// rank. x and y have one type (f32, f64 or i32), are contiguous, and are indexed as flat arrays. A
// step of x may be 0 (broadcast); any step may be negative (flip). No element of y is written
// twice: with axes ordered by step size, each step exceeds the reach of all smaller ones. whole:
// every element of y is written. Otherwise the others are unchanged. Overwritten values get no
// gradient, so each element of an assembled tensor must be written by one command.
struct CopyArgs {
  Tensor x, y;
  int64_t extent[Shape::kMaxRank] = {}, x_step[Shape::kMaxRank] = {}, y_step[Shape::kMaxRank] = {};
  int64_t x_first = 0, y_first = 0;
  int rank = 0;
  bool whole = true;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    f(self.y, written(!self.whole));
  }
  // The number of elements that are moved.
  LOOM_INLINE int64_t count() const {
    int64_t n = 1;
    for (int k = 0; k < rank; ++k) n *= extent[k];
    return n;
  }
  int64_t work() const { return 2 * count(); }
};

}  // namespace loom::core
