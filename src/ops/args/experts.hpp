// Products with the weights of several experts (docs/decisions/0116): the choice of experts, the
// order of rows by expert, and one product per expert over its rows. A packed matrix w has the
// matrices of E experts as runs of N rows: rows [e N, (e + 1) N) belong to expert e. P pairs are
// the (row, choice) pairs of R rows with k choices each, row by row.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// The k best experts of each row of x [R,E]: those with the largest x + bias, descending, ties by
// ascending index; NaN is below every number. bias [E] may be empty. With `groups` above 1 the
// experts are as many runs of equal length. Only the experts of the `chosen_groups` best groups are
// eligible. The score of a group is the sum of its `group_best` largest x + bias, added in
// descending order; ties go to the lower index. ids i32 [R,k]; slots i32 [R,k] = r E + ids[r,j],
// which is the index of the value in x.
struct TopExpertsArgs {
  Tensor x, bias, ids, slots;
  int64_t groups = 1, chosen_groups = 1, group_best = 1;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.bias);
    writes(f, self.ids, self.slots);
  }
  int64_t work() const { return x.shape.count() * (ids.cols() + 1); }
  // One row has eligible values, the scores of groups, both in f64 at most, and ids.
  int64_t scratch() const { return x.cols() * (8 + 8 + 4); }
};

// The pairs of ids i32 [R,k] in ascending order of expert; pairs of one expert keep their order.
// starts i32 [E+1]: the pairs of expert e are at [starts[e], starts[e+1]). For the pair at index i
// of this order: rows[i] is its row, experts[i] its expert. For pair p: positions[p] is its index.
// rows, experts, positions: i32 [P].
struct GroupRowsArgs {
  Tensor ids, starts, rows, experts, positions;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.ids);
    writes(f, self.starts, self.rows, self.experts, self.positions);
  }
  int64_t work() const {
    return 0;  // lane 0 does it
  }
};

// y[i,:] = x[i,:] . w_e^T for the rows [starts[e], starts[e+1]) of each expert e, as in matmul.
// x [P,K], starts i32 [E+1], w R16 [E N, K], y [P,N]. Weights of experts without rows are not read.
struct ExpertMatmulArgs {
  Tensor x, starts, w, y;
  Q8Rows q8;
  bool use_q8 = false;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    if (!self.use_q8) reads(f, self.x);
    reads(f, self.starts, self.w);
    writes(f, self.y);
  }
  static void memory(const auto& self, auto&& f) {
    if (self.use_q8) f(self.q8, Access::read);
  }
  int64_t experts() const { return starts.shape.count() - 1; }
  int64_t work() const { return y.rows() * y.cols() * w.cols() / 2; }
  // The second half: products with experts that begin inside of a group of sixteen rows.
  int64_t scratch() const { return 2 * kMatmulScratch; }
};

// dx[i,:] (+)= dy[i,:] . w_e, as in matmul_dx, for the rows of each expert. dy [P,N], dx [P,K].
struct ExpertMatmulDxArgs {
  Tensor dy, starts, w, dx;
  bool accumulate = false;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.starts, self.w);
    f(self.dx, written(self.accumulate));
  }
  int64_t experts() const { return starts.shape.count() - 1; }
  int64_t work() const { return dy.rows() * dy.cols() * dx.cols() / 2; }
};

// Rows [e N, (e + 1) N) of dw (+)= dy_e^T x_e, as in gemm, with the rows of expert e. dw: plain
// [E N, K]. Experts without rows have gradients of zero.
struct ExpertMatmulDwArgs {
  Tensor dy, x, starts, dw;
  bool accumulate = false;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.x, self.starts);
    f(self.dw, written(self.accumulate));
  }
  int64_t experts() const { return starts.shape.count() - 1; }
  int64_t work() const { return dy.rows() * dy.cols() * x.cols() / 2 + dw.shape.count(); }
};

}  // namespace loom::core
