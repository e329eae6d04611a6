// Attention: rotation, the cache of keys and values, whole sequences and one position. ops/args.hpp
// defines the letters, ops/operands.hpp the members of a struct.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

// y = x with the halves of each head rotated: (a, b) -> (a c - b s, a s + b c). Rows are runs of
// `length` (0 means one run); row i of a run is at position first + i. inverse: by the negative
// angle, which is the gradient. x, y [R, heads*D], y may be x; cos, sin [P, D/2], f32. If
// `rotary_dim` > 0, the halves are those of the first `rotary_dim` values of each head. The other
// values are kept, and cos, sin are [P, rotary_dim/2]. With `places` (RowPosition, [R, 2]) each row
// reads its position at run time; first and length are then 0.
struct RopeArgs {
  Tensor x, y, cos, sin;
  int64_t heads = 1;
  int64_t first = 0;
  int64_t length = 0;
  bool inverse = false;
  int64_t rotary_dim = 0;
  Tensor row_positions{};

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.x, self.cos, self.sin, self.row_positions);
    writes(f, self.y);
  }
};

// Appends rows of k and v [R, G*D] at positions first, first+1, ... of a cache of one sequence.
// With `places` (RowPosition, [R, 2]) each row reads its position at run time; no two rows share
// one.
struct KvWriteArgs {
  Tensor k, v;
  KvCache cache;
  int64_t first = 0;
  Tensor row_positions{};

  static constexpr Gradient kGradient = Gradient::none;
  static constexpr bool kF32Only = true;
  static void operands(auto& self, auto&& f) { reads(f, self.k, self.v, self.row_positions); }
  static void memory(const auto& self, auto&& f) { f(self.cache, Access::update); }
  int64_t work() const { return k.shape.count(); }
};

// y[r, h*D..] = softmax(scale * q . K^T) V over positions p <= first + r (causal), or over all
// `length` positions. With window > 0 only nearer positions count: |first + r - p| < window. Head h
// reads kv head h / (H/G). With soft_cap c > 0 a score s = scale * q . k counts as c tanh(s / c).
// slopes [H], may be empty: ALiBi; the score of position p becomes s - slopes[h] * |first + r - p|.
// sinks [H], may be empty: a score without a value, which only takes part in the softmax.
// With `places` ([R, 2], with pages [R, 2 + N]: ops/recording/pages.hpp) row r reads its sequence
// and position at run time. So rows of several sequences share a pass. All positions are then below
// `length`, first is 0, and causal is true.
struct AttentionArgs {
  Tensor q, y;
  KvCache cache;
  int64_t heads = 1;
  int64_t first = 0;
  int64_t length = 0;  // positions in the cache, at least first + R when causal
  int64_t window = 0;
  float scale = 1.0f;
  bool causal = true;
  float soft_cap = 0.0f;
  Tensor row_positions{};
  Tensor slopes{}, sinks{};

  static constexpr Gradient kGradient = Gradient::none;
  static constexpr bool kF32Only = true;
  static void operands(auto& self, auto&& f) {
    reads(f, self.q, self.row_positions, self.slopes, self.sinks);
    writes(f, self.y);
  }
  static void memory(const auto& self, auto&& f) { f(self.cache, Access::read); }
  int64_t work() const { return q.shape.count() * length; }
  int64_t scratch() const { return attention_scratch(length); }
};

// Self-attention of whole sequences, without a cache: R = sequences * T rows. y[r,h] =
// softmax(scale * q . K^T) V over the visible positions of the row's own sequence. Visible are
// earlier positions and itself (causal), the last `window` of those (window > 0; not causal:
// |distance| < window), and only those with mask != 0 (mask [sequences, T], may be empty). Sums and
// soft_cap as in attention, over all positions between the first and the last that causality and
// the window allow. Masked ones count as zeros. slopes (always f32) and sinks as in attention. With
// row_positions (RowPosition, [R, 2]; causal) a sequence is a row of documents, one after the
// other: a row at position p of its document sees at most the p rows before it, and itself. The
// position of a row is 0, or one more than that of the row before.
struct AttendArgs {
  Tensor q, k, v, y, mask;
  int64_t sequences = 1, heads = 1, kv_heads = 1, window = 0;
  float scale = 1.0f;
  bool causal = true;
  float soft_cap = 0.0f;
  Tensor slopes{}, sinks{}, row_positions{};

  static constexpr Gradient kGradient = Gradient::rule;
  static void operands(auto& self, auto&& f) {
    reads(f, self.q, self.k, self.v, self.mask, self.slopes, self.sinks, self.row_positions);
    writes(f, self.y);
  }
  int64_t work() const { return q.shape.count() * (q.rows() / sequences); }
  int64_t scratch() const { return attend_scratch(score_count()); }
  // Scores of a row: one per position, and a sink.
  int64_t score_count() const { return q.rows() / sequences + (sinks.empty() ? 0 : 1); }
};

// With P the weights of attend: dv = P^T dy; dP = dy V^T; dS = P * (dP - rowsum(P * dP)) * scale;
// dq = dS k; dk = dS^T q; heads that share keys and values add up, head ascending. With soft_cap c,
// dS is multiplied by 1 - tanh(s / c)^2 before scale. dsinks [R, heads] exists if sinks do: minus
// the weight of the sink times rowsum(P * dP). Its column sums are the gradient of sinks.
struct AttendDxArgs {
  Tensor q, k, v, dy, mask, dq, dk, dv;
  int64_t sequences = 1, heads = 1, kv_heads = 1, window = 0;
  float scale = 1.0f;
  bool causal = true;
  float soft_cap = 0.0f;
  Tensor slopes{}, sinks{}, dsinks{}, row_positions{};

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.q, self.k, self.v, self.dy, self.mask, self.slopes, self.sinks,
          self.row_positions);
    writes(f, self.dq, self.dk, self.dv, self.dsinks);
  }
  int64_t work() const { return 3 * q.shape.count() * (q.rows() / sequences); }
  int64_t scratch() const { return attend_dx_scratch(score_count(), soft_cap > 0.0f); }
  int64_t score_count() const { return q.rows() / sequences + (sinks.empty() ? 0 : 1); }
};

}  // namespace loom::core
