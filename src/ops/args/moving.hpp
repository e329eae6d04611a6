// Ops that move values without computing: one strided copy, of which reshape, transpose, slice,
// flip, expand, concatenation and padding with a constant are cases (ops/moves.hpp makes them).
// ops/args.hpp says what the letters mean, ops/operands.hpp what a struct tells about itself.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// y[y_first + sum_k i_k y_step[k]] = x[x_first + sum_k i_k x_step[k]] for all i_k < extent[k],
// k < rank. x and y are of one type (f32, f64 or i32), without gaps, counted as flat arrays. A
// step of x may be 0 (broadcast), any step negative (flip). No element of y is written twice: with
// axes ordered by the size of their steps, each step is beyond all that the smaller ones reach.
// whole: every element of y is written. Else the others stay as they are; no gradient goes to what
// was written over, so a tensor that is put together has each element written by one command.
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
  // Elements that are moved.
  LOOM_INLINE int64_t count() const {
    int64_t n = 1;
    for (int k = 0; k < rank; ++k) n *= extent[k];
    return n;
  }
  int64_t work() const { return 2 * count(); }
};

}  // namespace loom::core
