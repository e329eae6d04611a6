// Ops for training only: losses and updates. ops/args.hpp defines the letters, ops/operands.hpp the
// members of a struct.
#pragma once

#include "ops/operands.hpp"

namespace loom::core {

enum class LossKind : uint8_t {
  mse,
  mae,
  huber,
  softmax_ce,
  bce,
  kl,
  cosine,
  focal,
  quantile,
  poisson,
  log_cosh,
  hinge
};

// Whether a row's loss is the mean of a function of each value and its target.
constexpr bool is_mean(LossKind kind) {
  using enum LossKind;
  return kind != softmax_ce && kind != kl && kind != cosine;
}

// The loss of each row times its weight, and the gradient: row_loss[r] = weight[r] L(pred[r],
// target[r]), dpred = weight[r] dL/dpred. One of them may be empty. target [R,N], or class ids i32
// [R] for softmax_ce.
//   mse, mae, huber, bce: mean over the N values; huber: d^2/2 up to `delta`, then delta (|d| -
//   delta/2); bce: on logits; softmax_ce: -sum t log softmax(pred), t smoothed to (1 - s) t + s/N
//   by `smoothing`; kl: sum t (log t - log softmax(pred)); cosine: 1 - cos(pred, target).
// Further means over the N values, with d = pred - target:
//   focal:    on logits, with u = 1 - p the probability of the wrong class: a u^delta bce.
//             a is alpha for target 1 and 1 - alpha for 0; alpha below 0: a = 1 (Lin et al., 2017).
//   quantile: max(delta (-d), (1 - delta) d): the share `delta` of targets is below pred.
//   poisson:  e^pred - t pred, for a logarithm of counts.
//   log_cosh: log cosh d.      hinge: max(0, 1 - y pred), y = 1 if t > 0, else -1.
struct LossArgs {
  Tensor pred, target, weight, row_loss, dpred;
  LossKind kind = LossKind::mse;
  float delta = 1.0f;
  float smoothing = 0.0f;
  float alpha = -1.0f;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.pred, self.target, self.weight);
    writes(f, self.row_loss, self.dpred);
  }
  int64_t work() const { return 4 * pred.shape.count(); }
};

enum class UpdateKind : uint8_t {
  sgd,
  momentum,
  nesterov,
  rmsprop,
  adam,
  adamw,
  lion,
  adagrad,
  adadelta,
  nadam,
  adamax,
  radam
};

// Which moments a kind has.
constexpr bool keeps_m(UpdateKind kind) {
  using enum UpdateKind;
  return kind != sgd && kind != rmsprop && kind != adagrad;
}
constexpr bool keeps_v(UpdateKind kind) {
  using enum UpdateKind;
  return kind != sgd && kind != momentum && kind != nesterov && kind != lion;
}

// One update of p in place, value by value, with gradient g * scale[0] (scale may be empty: 1; a
// NaN in it leaves everything unchanged). hyper [4] = learning rate, c1 = 1 - beta1^t, c2 = 1 -
// beta2^t, c3. m and v: first and second moment, if the kind has them. With `rows`, row i of g
// belongs to row rows[i] of p, m and v. Moments of other rows do not decay (as in PyTorch's
// SparseAdam).
//   sgd:      p -= lr (g + wd p)
//   momentum: m = b1 m + (g + wd p); p -= lr m     nesterov: p -= lr (g + wd p + b1 m)
//   rmsprop:  v = b2 v + (1 - b2) g^2; p -= lr g / (sqrt(v) + eps), g including wd p
//   adam:     m, v averages; p -= lr (m / c1) / (sqrt(v / c2) + eps), g including wd p;
//   adamw:    the same with p -= lr wd p apart from g (Loshchilov and Hutter, 2019)
//   lion:     p -= lr (sign(b1 m + (1 - b1) g) + wd p); m = b2 m + (1 - b2) g (Chen et al., 2023)
// In the following kinds g includes wd p:
//   adagrad:  v += g^2; p -= lr g / (sqrt(v) + eps) (Duchi et al., 2011)
//   adadelta: v = b2 v + (1 - b2) g^2; d = sqrt(m + eps) / sqrt(v + eps) g;
//             m = b2 m + (1 - b2) d^2; p -= lr d (Zeiler, 2012)
//   nadam:    m, v averages; p -= lr (c1 g + c3 m) / (sqrt(v / c2) + eps); with u(t) = b1 (1 -
//             0.96^(t / 250) / 2): c1 = (1 - u(t)) / (1 - u(1) ... u(t)), c3 = u(t + 1) / (1 -
//             u(1) ... u(t + 1)) (Dozat, 2016)
//   adamax:   m average; v = max(b2 v, |g| + eps); p -= lr (m / c1) / v (Kingma and Ba, 2015)
//   radam:    m, v averages; p -= lr (m / c1) c3 / (sqrt(v) + eps), or p -= lr (m / c1) where c3 is
//             0; c3 = sqrt(1 - b2^t) times the rectification (Liu et al., 2020)
struct OptimizeArgs {
  Tensor p, g, m, v, hyper, scale;
  UpdateKind kind = UpdateKind::sgd;
  float beta1 = 0.9f, beta2 = 0.999f, eps = 1e-8f, decay = 0.0f;
  Tensor rows;

  static constexpr Gradient kGradient = Gradient::none;
  static void operands(auto& self, auto&& f) {
    reads(f, self.g, self.hyper, self.scale, self.rows);
    updates(f, self.p, self.m, self.v);
  }
  int64_t work() const { return 2 * g.shape.count(); }
};

}  // namespace loom::core
