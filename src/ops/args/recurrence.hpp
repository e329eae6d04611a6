// Recurrences along a sequence, whose memory of earlier rows has a fixed size: a causal convolution
// and a selective scan. ops/args.hpp defines the letters, ops/operands.hpp the members of a struct.
//
// Rows of x are `sequences` consecutive runs of equal length, in the order of time. `state` [S, W]
// has what earlier passes left, a row for each sequence; it is updated. Without it, sequences begin
// with zeros.
//
// A ragged pass has `order` instead, i32 [R, 3]: its rows in the order of the recurrence, as (row
// of x, row of `state` that is read, row of `state` that is written). A negative row that is read
// means zeros: the sequence begins. So a pass can leave the state before it intact.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// y[t,c] = (sum over k of w[c,k] * x[t-K+1+k,c]) + bias[c], k ascending, under rule 2 of
// docs/numerics.md. x, y [R,C]; w [C K]; bias [C] may be empty. W = (K-1) C: the last K-1 rows of
// x, the oldest first. K is at most kMaxKernel.
struct CausalConvArgs {
  static constexpr int64_t kMaxKernel = 64;
  Tensor x, w, bias, state, order, y;
  int64_t sequences = 1;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.w, self.bias, self.order);
    updates(f, self.state);
    writes(f, self.y);
  }
  int64_t kernel() const { return x.cols() == 0 ? 1 : w.shape.count() / x.cols(); }
  int64_t work() const { return x.rows() * w.shape.count() / 2 + x.shape.count(); }
};

// dx[t,c] (+)= sum over k of w[c,k] * dy[t+K-1-k,c]; dw[c,k] (+)= sum over t of dy[t,c] *
// x[t-K+1+k,c]. Both ascend under rule 2, sequences first. dx, dw may be empty.
struct CausalConvDxArgs {
  Tensor dy, x, w, dx, dw;
  int64_t sequences = 1;
  bool accumulate_dx = false, accumulate_dw = false;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.x, self.w);
    f(self.dx, written(self.accumulate_dx));
    f(self.dw, written(self.accumulate_dw));
  }
  int64_t kernel() const { return x.cols() == 0 ? 1 : w.shape.count() / x.cols(); }
  int64_t work() const { return x.rows() * w.shape.count() + x.shape.count(); }
};

// The selective scan (Gu and Dao, 2023; Dao and Gu, 2024). Head i has P channels, and a state of N
// numbers for each; head i reads group i / (H/G) of b and c:
//   h[p,n] = fma(exp(dt[i] a[i,n]), h[p,n], (dt[i] b[n]) x[i,p])
//   y[i,p] = (sum over n of c[n] * h[p,n]) + d[i] x[i,p]
// in the written order, n ascending, under rule 2. x, y [R, H P]; dt [R, H]; a [H N], or [H] if a
// head has one number for all n; b, c [R, G N]; d [H] may be empty. W = N H P, all channels for
// number 0 first. N is at most kMaxState.
struct SelectiveScanArgs {
  static constexpr int64_t kMaxState = 256;
  Tensor x, dt, a, b, c, d, state, order, y;
  int64_t groups = 1, sequences = 1;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.dt, self.a, self.b, self.c, self.d, self.order);
    updates(f, self.state);
    writes(f, self.y);
  }
  int64_t heads() const { return dt.cols(); }
  int64_t channels() const { return x.cols() / dt.cols(); }  // of a head
  int64_t numbers() const { return b.cols() / groups; }      // of the state of a channel
  int64_t work() const { return 8 * x.shape.count() * numbers(); }
  // The states of a head, if there is no other memory for them.
  int64_t scratch() const { return state.empty() ? 8 * channels() * numbers() : 0; }
};

// Gradients of a scan without `state`, from h of every row, computed again. With l[t,p,n] =
// c[n] dy[t,p] + exp(dt[t+1] a[n]) l[t+1,p,n], e = exp(dt[t] a[n]) and h' = h[t-1,p,n]:
//   dx[t,p] = dt (sum over n of b[n] l[p,n]) + d dy[t,p]
//   ddt[t]  = sum over p, n of l (a[n] e h' + b[n] x)
//   da[n]   = sum over t, p of l dt e h',   dd = sum over t, p of dy x
// Sums run over sequences, p, t descending and n ascending, in this order of loops. All four may
// be empty.
struct SelectiveScanDxArgs {
  Tensor dy, x, dt, a, b, c, d, dx, ddt, da, dd;
  int64_t groups = 1, sequences = 1;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.x, self.dt, self.a, self.b, self.c, self.d);
    writes(f, self.dx, self.ddt, self.da, self.dd);
  }
  int64_t heads() const { return dt.cols(); }
  int64_t channels() const { return x.cols() / dt.cols(); }
  int64_t numbers() const { return b.cols() / groups; }
  int64_t work() const { return 24 * x.shape.count() * numbers(); }
  int64_t scratch() const { return 8 * (x.rows() / sequences + 1) * numbers(); }
};

// The same for b and c: db[t,n] = sum of l dt x, dc[t,n] = sum of dy h, over the heads of the group
// and p, ascending.
struct SelectiveScanDbArgs {
  Tensor dy, x, dt, a, b, c, db, dc;
  int64_t groups = 1, sequences = 1;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.x, self.dt, self.a, self.b, self.c);
    writes(f, self.db, self.dc);
  }
  int64_t heads() const { return dt.cols(); }
  int64_t channels() const { return x.cols() / dt.cols(); }
  int64_t numbers() const { return b.cols() / groups; }
  int64_t work() const { return 24 * x.shape.count() * numbers(); }
  int64_t scratch() const { return 8 * (x.rows() / sequences); }
};

}  // namespace loom::core
