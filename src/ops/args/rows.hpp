// Row-wise ops: look-ups, norms, softmax, reductions, selection of the largest. ops/args.hpp
// defines the letters, ops/operands.hpp the members of a struct.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// y[i,:] = table[ids[i],:]. The recorder's caller checks ids; table is R16 or plain. The row of id
// `skip` gets no gradient. sparse: the gradient of the table has only the rows that ids name
// (Differentiator::rows).
struct GatherRowsArgs {
  Tensor table, ids, y;
  int64_t skip = -1;
  bool sparse = false;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.table, self.ids);
    writes(f, self.y);
  }
  int64_t work() const { return y.shape.count() + kFarRow * y.rows(); }
};

// The distinct rows that ids name: rows[r] = ids[r] at the first occurrence of that id, else -1;
// first[r] = the index of the first occurrence. Id `skip` gives -1 in both. seen [N] is scratch
// memory; N exceeds every id, and its contents are undefined before and after.
struct DistinctRowsArgs {
  Tensor ids, seen, rows, first;
  int64_t skip = -1;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.ids);
    writes(f, self.seen, self.rows, self.first);
  }
  int64_t work() const {
    return 0;  // lane 0 does it
  }
};

// table[ids[r],:] += dy[r,:], r ascending. Rows with id `skip` are skipped. table: plain.
struct ScatterAddRowsArgs {
  Tensor dy, ids, table;
  int64_t skip = -1;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.dy, self.ids);
    updates(f, self.table);
  }
  int64_t work() const { return dy.shape.count() + kFarRow * dy.rows(); }
};

enum class NormKind : uint8_t { rms, layer };

// Row-wise over the last axis, split into `segments` equal parts that are normalized separately
// (per-head norms):
//   rms:   y = x / sqrt(mean(x^2) + eps) * gamma;
//   layer: y = (x - mean) / sqrt(var + eps) * gamma + beta.
struct NormArgs {
  Tensor x, gamma, beta, y;
  float eps = 1e-5f;
  NormKind kind = NormKind::rms;
  int64_t segments = 1;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.gamma, self.beta);
    writes(f, self.y);
  }
};

// Gradient of norm by row segment. rms: r = 1/sqrt(mean(x^2) + eps), h = x r. layer: r = 1/sqrt(var
// + eps), h = (x - mean) r. With u = dy * gamma:
//   rms:   dx = r (u - h mean(u h));   layer: dx = r (u - mean(u) - h mean(u h)).
// scaled (may be empty) = dy * h, whose column sums are dgamma.
struct NormDxArgs {
  Tensor x, gamma, dy, dx, scaled;
  float eps = 1e-5f;
  NormKind kind = NormKind::rms;
  int64_t segments = 1;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.gamma, self.dy);
    writes(f, self.dx, self.scaled);
  }
};

// Row-wise over the last axis: y = softmax(x * scale).
struct SoftmaxArgs {
  Tensor x, y;
  float scale = 1.0f;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.y);
  }
};

// Row-wise: dx = scale * y * (dy - sum(dy * y)).
struct SoftmaxDxArgs {
  Tensor y, dy, dx;
  float scale = 1.0f;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.y, self.dy);
    writes(f, self.dx);
  }
  int64_t work() const { return dy.shape.count(); }
};

// Row-wise alpha-entmax of x * scale (Peters, Niculae, Martins, 2019): y = max((a-1) x scale - t,
// 0)^(1/(a-1)) with t such that y sums to 1. alpha 2 (sparsemax, Martins and Astudillo, 2016) and
// 1.5 are exact, by sorting; others use 60 halvings of t. alpha > 1.
struct EntmaxArgs {
  Tensor x, y;
  float scale = 1.0f;
  float alpha = 1.5f;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.y);
  }
  int64_t work() const { return 8 * x.shape.count(); }
};

// With s = y^(2 - alpha) where y > 0, else 0: dx = scale * s * (dy - sum(s dy) / sum(s)).
struct EntmaxDxArgs {
  Tensor y, dy, dx;
  float scale = 1.0f;
  float alpha = 1.5f;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.y, self.dy);
    writes(f, self.dx);
  }
  int64_t work() const { return 4 * dy.shape.count(); }
};

enum class ReduceKind : uint8_t { sum, mean, sum_squares, max };

// y[r] = reduction of row r of x.
struct ReduceArgs {
  Tensor x, y;
  ReduceKind kind = ReduceKind::sum;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.y);
  }
};

// y[n] (+)= sum over r of x[r,n], under rule 4 down each column.
struct ReduceColsArgs {
  Tensor x, y;
  bool accumulate = false;

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    f(self.y, written(self.accumulate));
  }
};

// ids[r] = index of the first largest value of row r (NaN counts as smallest). ids: i32.
struct ArgmaxArgs {
  Tensor x, ids;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.ids);
  }
};

// The k largest values of each row, descending, ties by ascending index. values [R,k], ids i32
// [R,k].
struct TopkArgs {
  Tensor x, values, ids;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x);
    writes(f, self.values, self.ids);
  }
};

// Draws one of the k candidates of each row: next[r] = ids[r,i]. values [R,k] (f32) are the output
// of topk, ids i32 [R,k], next i32 [R]; k <= kMax. After the weights everything is in integers,
// with ONE = 2^22:
//   w_i = ONE if v_i == v_0; 0 for other infinities; else min(floor(exp((v_i - v_0) /
//     temperature) ONE + 1/2), ONE), exp and its argument in f32 (NaN counts as -inf).
//   kept: candidate 0 and later ones, up to the first with one of these properties:
//     w_i < ceil(min_p ONE);
//     its predecessors sum up to ceil(ceil(top_p 2^31) (w_0 + .. + w_{k-1}) / 2^31).
//   i: the first with w_0 + .. + w_i > floor(u m / 2^32), m the sum of those kept and u word 0 of
//     Philox(seed, stream 0, index + r).
// temperature is positive and not subnormal, top_p in (0, 1], min_p in [0, 1].
struct SampleArgs {
  static constexpr int64_t kMax = 256;
  Tensor values, ids, next;
  float temperature = 1.0f, top_p = 1.0f, min_p = 0.0f;
  uint64_t seed = 0, index = 0;

  static constexpr Gradient kGradient = Gradient::none;
  static constexpr bool kF32Only = true;
  static void operands(auto& self, auto&& f) {
    reads(f, self.values, self.ids);
    writes(f, self.next);
  }
  int64_t work() const { return 16 * values.shape.count(); }
};

}  // namespace loom::core
