// One step of learning rules on chains of Dense layers, in doubles: learn/rules/signals.hpp once
// more, written as its formulas are.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "learn/train_rig.hpp"

namespace loom::core::test {

using Grid2 = std::vector<std::vector<double>>;

inline Grid2 empty_grid(size_t rows, size_t cols) {
  return Grid2(rows, std::vector<double>(cols));
}

inline Grid2 multiplied(const Grid2& a, const Grid2& b) {
  Grid2 y = empty_grid(a.size(), b[0].size());
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t j = 0; j < b[0].size(); ++j) y[i][j] += a[i][k] * b[k][j];
  return y;
}

inline Grid2 grid_of(const Tensor& t, size_t rows, size_t cols) {
  Grid2 y = empty_grid(rows, cols);
  for (size_t i = 0; i < rows * cols; ++i) y[i / cols][i % cols] = static_cast<double>(t.f32()[i]);
  return y;
}

// The matrix of the cut after `cell`.
inline Grid2 random_of(uint64_t seed, size_t cell, size_t rows, size_t cols) {
  const Rng rng(seed, (uint64_t{1} << 51) + cell);
  Grid2 b = empty_grid(rows, cols);
  const double most = std::sqrt(3.0 / static_cast<double>(rows));
  for (size_t i = 0; i < rows * cols; ++i)
    b[i / cols][i % cols] = (2.0 * static_cast<double>(rng.uniform(i)) - 1.0) * most;
  return b;
}

struct RuleCase {
  std::vector<int64_t> widths;  // of the input and of every layer
  int64_t batch = 1;
  bool tanh = true;  // of hidden layers; else ReLU
  bool classes = false;
  Rule rule = Rule::dfa;
  uint64_t seed = 1;

  std::string str() const {
    std::string text = cat(rule_name(rule), classes ? " classes" : " mse", " seed ", seed,
                           " batch ", batch, tanh ? " tanh" : " relu");
    for (const int64_t w : widths) text += cat(" ", w);
    return text;
  }
  GridSpec grid() const {
    std::vector<LayerConfig> layers;
    for (size_t i = 0; i + 1 < widths.size(); ++i) {
      const bool last = i + 2 == widths.size();
      layers.push_back(layer(LayerKind::dense, {{"in", widths[i]},
                                                {"out", widths[i + 1]},
                                                {"activation", std::string(last   ? "linear"
                                                                           : tanh ? "tanh"
                                                                                  : "relu")}}));
    }
    return row_of(std::move(layers));
  }
  TrainStepOptions options() const {
    TrainStepOptions o;
    o.loss.kind = classes ? Loss::cross_entropy : Loss::mse;
    o.class_ids = classes;
    o.optimizer.kind = loom::OptimizerKind::sgd;
    o.rule.kind = rule;
    o.rule.beta = 0.5f;
    o.seed = seed;
    return o;
  }
};

// The step of one case in doubles.
class RuleOracle {
 public:
  RuleOracle(const RuleCase& c, TrainRig& rig) : c_(c), n_(static_cast<size_t>(c.batch)) {
    const auto size = [&](size_t i) { return static_cast<size_t>(c.widths[i]); };
    for (size_t k = 0; k + 1 < c.widths.size(); ++k) {
      const std::string at = cat("(0, 0, ", k, ", 0)/");
      for (const StateTensor& p : rig.step().state()) {
        if (p.name == at + "weight") w_.push_back(grid_of(p.tensor, size(k + 1), size(k)));
        if (p.name == at + "bias") b_.push_back(grid_of(p.tensor, 1, size(k + 1)));
        if (p.name == at + "inverse/weight")
          inverse_.push_back(grid_of(p.tensor, size(k + 2), size(k + 1)));
        if (p.name == at + "inverse/bias")
          inverse_bias_.push_back(grid_of(p.tensor, 1, size(k + 1)));
      }
    }
    h_.push_back(grid_of(rig.step().x(), n_, size(0)));
    for (size_t k = 0; k < w_.size(); ++k) forward(k);
    gradient_of_loss(rig);
  }

  // Signals of all layers, then the weights after a step with this rate.
  void step(double rate) {
    std::vector<Grid2> signals(w_.size());
    signals.back() = c_.rule == Rule::hebb ? away_from_target(w_.size() - 1, targets()) : e_;
    const bool damped = c_.rule == Rule::diff_project || c_.rule == Rule::fixed_dtp;
    for (auto& row : signals.back())
      for (double& v : row) v *= damped ? 0.5 : 1.0;
    for (size_t k = w_.size() - 1; k-- > 0;) signals[k] = signal(k, signals[k + 1]);
    for (size_t k = 0; k < w_.size(); ++k) {
      const double share = c_.rule == Rule::chain ? factor(k, signals[k]) : 1.0;
      for (size_t r = 0; r < n_; ++r) {
        for (size_t o = 0; o < w_[k].size(); ++o) {
          const double own = c_.rule == Rule::hebb ? 1.0 : slope(k, r, o);
          const double d = share * signals[k][r][o] * own;
          b_[k][0][o] -= rate * d;
          for (size_t i = 0; i < w_[k][o].size(); ++i) w_[k][o][i] -= rate * d * h_[k][r][i];
        }
      }
    }
  }
  const Grid2& weight(size_t k) const { return w_[k]; }
  const Grid2& bias(size_t k) const { return b_[k]; }

 private:
  bool hidden(size_t k) const { return k + 1 < w_.size(); }

  void forward(size_t k) {
    Grid2 z = empty_grid(n_, w_[k].size());
    for (size_t r = 0; r < n_; ++r) {
      for (size_t o = 0; o < w_[k].size(); ++o) {
        double sum = b_[k][0][o];
        for (size_t i = 0; i < w_[k][o].size(); ++i) sum += w_[k][o][i] * h_[k][r][i];
        z[r][o] = !hidden(k) ? sum : c_.tanh ? std::tanh(sum) : std::max(sum, 0.0);
      }
    }
    h_.push_back(std::move(z));
  }

  double slope(size_t k, size_t r, size_t o) const {
    const double y = h_[k + 1][r][o];
    return !hidden(k) ? 1.0 : c_.tanh ? 1 - y * y : y > 0 ? 1.0 : 0.0;
  }

  void gradient_of_loss(TrainRig& rig) {
    const Grid2& y = h_.back();
    const size_t out = y[0].size();
    e_ = minus_t_ = empty_grid(n_, out);
    for (size_t r = 0; r < n_; ++r) {
      const double w = static_cast<double>(rig.step().weight().f32()[r]);
      weights_.push_back(w);
      double sum = 0;
      for (const double v : y[r]) sum += std::exp(v);
      for (size_t o = 0; o < out; ++o) {
        const Tensor& target = rig.step().target();
        const double t = c_.classes ? (target.i32()[r] == static_cast<int32_t>(o) ? 1.0 : 0.0)
                                    : static_cast<double>(target.f32()[r * out + o]);
        minus_t_[r][o] = -w * t;
        e_[r][o] = c_.classes ? w * (std::exp(y[r][o]) / sum - t)
                              : w * 2 * (y[r][o] - t) / static_cast<double>(out);
      }
    }
  }

  Grid2 signal(size_t k, const Grid2& above) const {
    const size_t width = h_[k + 1][0].size();
    switch (c_.rule) {
      case Rule::dfa: return multiplied(e_, random_of(c_.seed, k, e_[0].size(), width));
      case Rule::drtp: return multiplied(minus_t_, random_of(c_.seed, k, e_[0].size(), width));
      case Rule::fixed_dtp:
        return through_inverse(k, above, random_of(c_.seed, k, h_[k + 2][0].size(), width), {});
      case Rule::chain: return through_slopes(k, above, 1.0);
      case Rule::dtp:
        if (k + 2 == w_.size()) return through_slopes(k, above, 0.5);
        return through_inverse(k, above, inverse_[k], inverse_bias_[k][0]);
      case Rule::hebb: return away_from_target(k, target_below(k));
      default: return projected(k, above);
    }
  }

  Grid2 through_slopes(size_t k, const Grid2& above, double share) const {
    Grid2 before = above;
    for (size_t r = 0; r < n_; ++r)
      for (size_t o = 0; o < before[r].size(); ++o) before[r][o] *= share * slope(k + 1, r, o);
    return multiplied(before, w_[k + 1]);
  }

  // 0.5 + budget / 2, or 0 below the gate of 0.2.
  double factor(size_t k, const Grid2& s) const {
    const Grid2& h = h_[k + 1];
    double both = 0, of_h = 0, of_t = 0;
    for (size_t r = 0; r < n_; ++r) {
      for (size_t i = 0; i < h[r].size(); ++i) {
        const double t = h[r][i] - 0.1 * static_cast<double>(n_) * s[r][i];
        both += h[r][i] * t;
        of_h += h[r][i] * h[r][i];
        of_t += t * t;
      }
    }
    const double cosine = of_h > 0 && of_t > 0 ? both / std::sqrt(of_h * of_t) : 0.0;
    const double budget = 0.5 * cosine + 0.5;
    return budget < 0.2 ? 0.0 : 0.5 + 0.5 * budget;
  }

  Grid2 targets() const {
    Grid2 t = minus_t_;
    for (size_t r = 0; r < n_; ++r)
      for (double& v : t[r]) v /= -weights_[r];
    return t;
  }
  // hebb: the target of layer k, by way of all above.
  Grid2 target_below(size_t k) const {
    Grid2 t = targets();
    for (size_t layer = w_.size() - 1; layer > k; --layer) {
      const Grid2& w = w_[layer];
      t = multiplied(t, w);
      for (size_t i = 0; i < t[0].size(); ++i) {
        double sum = 0;
        for (const auto& row : w) sum += std::fabs(row[i]);
        for (auto& row : t) row[i] = sum > 0.01 ? row[i] / sum : 0.0;
      }
    }
    return t;
  }
  Grid2 away_from_target(size_t k, Grid2 t) const {
    for (size_t r = 0; r < n_; ++r)
      for (size_t i = 0; i < t[r].size(); ++i) t[r][i] = weights_[r] * (h_[k + 1][r][i] - t[r][i]);
    return t;
  }

  Grid2 projected(size_t k, const Grid2& above) const {
    const Grid2& w = w_[k + 1];
    Grid2 s = multiplied(above, w);
    for (size_t i = 0; i < s[0].size(); ++i) {
      double sum = 0;
      for (const auto& row : w) sum += std::fabs(row[i]);
      const double factor = sum > 0.01 ? std::sqrt(static_cast<double>(w.size())) / sum : 0.0;
      for (auto& row : s) row[i] *= factor;
    }
    return s;
  }

  Grid2 through_inverse(size_t k, const Grid2& above, const Grid2& v,
                        const std::vector<double>& bias) const {
    const Grid2& upper = h_[k + 2];
    Grid2 target = upper;
    const double n = static_cast<double>(n_);
    for (size_t r = 0; r < n_; ++r)
      for (size_t o = 0; o < upper[0].size(); ++o) target[r][o] -= n * above[r][o];
    Grid2 s = multiplied(upper, v);
    const Grid2 expected = multiplied(target, v);
    for (size_t r = 0; r < n_; ++r) {
      for (size_t i = 0; i < s[0].size(); ++i) {
        const double c = bias.empty() ? 0.0 : bias[i];
        s[r][i] = (std::tanh(s[r][i] + c) - std::tanh(expected[r][i] + c)) / n;
      }
    }
    return s;
  }

  const RuleCase& c_;
  size_t n_;
  std::vector<Grid2> w_, b_, h_;  // h_[0]: the input
  Grid2 e_, minus_t_;
  std::vector<Grid2> inverse_, inverse_bias_;  // of dtp
  std::vector<double> weights_;                // of rows
};

// Infinite if a number is NaN, which std::max would skip.
inline double farthest(const Grid2& expected, const Grid2& got) {
  double most = 0;
  for (size_t r = 0; r < expected.size(); ++r) {
    for (size_t c = 0; c < expected[0].size(); ++c) {
      const double gap = std::fabs(expected[r][c] - got[r][c]);
      most = std::isnan(gap) ? INFINITY : std::max(most, gap);
    }
  }
  return most;
}

}  // namespace loom::core::test
