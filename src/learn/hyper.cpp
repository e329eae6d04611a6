#include "learn/hyper.hpp"

#include <algorithm>
#include <cmath>

#include "base/dmath.hpp"

namespace loom::core {
namespace {

// base^exponent, base above 0.
double raised(double base, double exponent) {
  return dmath::exp(exponent * dmath::log(base));
}

// 1 - beta^t of update t, from 1.
double corrected(float beta, int64_t t) {
  if (beta <= 0.0f) return 1.0;
  const double log = dmath::log(static_cast<double>(beta));
  return 1.0 - dmath::exp(static_cast<double>(t) * log);
}

// u(t) of nadam: the momentum rises from half of beta1.
double momentum_at(float beta1, int64_t t) {
  return static_cast<double>(beta1) * (1.0 - 0.5 * raised(0.96, static_cast<double>(t) * 0.004));
}

}  // namespace

HyperNumbers::HyperNumbers(const OptimizerSpec& spec, const std::vector<ParamRule>& rules)
    : spec_(spec) {
  for (const ParamRule& rule : rules) {
    if (std::find(factors_.begin(), factors_.end(), rule.factor) == factors_.end())
      factors_.push_back(rule.factor);
  }
}

int64_t HyperNumbers::rows() const {
  const auto factors = static_cast<int64_t>(factors_.size());
  if (spec_.layerwise == Layerwise::lamb) return factors + 1;
  return spec_.layerwise == Layerwise::adafactor ? 2 * factors + 1 : factors;
}

int64_t HyperNumbers::row_of(const ParamRule& rule) const {
  return std::find(factors_.begin(), factors_.end(), rule.factor) - factors_.begin();
}

bool HyperNumbers::fill(double rate, int64_t updates, float* to) {
  to[0] = static_cast<float>(rate);
  correct(updates, to);
  const bool same = filled_ && spec_.layerwise == Layerwise::none;
  if (same && std::equal(to, to + 4, last_.begin())) return false;
  std::copy_n(to, 4, last_.begin());
  filled_ = true;
  for (size_t i = 1; i < factors_.size(); ++i) {
    float* const own = to + 4 * i;
    std::copy_n(to, 4, own);
    own[0] = static_cast<float>(rate * factors_[i]);
  }
  fill_layerwise(rate, updates, to);
  return true;
}

void HyperNumbers::fill_layerwise(double rate, int64_t updates, float* to) const {
  const bool adafactor = spec_.layerwise == Layerwise::adafactor;
  if (!adafactor && spec_.layerwise != Layerwise::lamb) return;
  float* const unit = to + 4 * factors_.size();
  std::copy_n(to, 4, unit);
  unit[0] = adafactor ? to[3] : 1.0f;
  const double most = 1.0 / std::sqrt(static_cast<double>(updates + 1));
  for (size_t i = 0; adafactor && i < factors_.size(); ++i) {
    std::copy_n(to, 4, unit + 4 * (i + 1));
    unit[4 * (i + 1)] = static_cast<float>(rate * factors_[i]);
    to[4 * i] = static_cast<float>(std::min(rate * factors_[i], most));
  }
}

// Kinds without corrections have the same numbers at every step, so nothing is sent while the rate
// stays.
void HyperNumbers::correct(int64_t updates, float* row) {
  const bool corrects = spec_.corrects();
  row[1] = corrects ? static_cast<float>(corrected(spec_.beta1, updates + 1)) : 1.0f;
  row[2] = corrects ? static_cast<float>(corrected(spec_.beta2, updates + 1)) : 1.0f;
  row[3] = 0.0f;
  if (spec_.kind == OptimizerKind::nadam) correct_nadam(updates, row);
  if (spec_.kind == OptimizerKind::radam) correct_radam(updates, row);
  if (spec_.layerwise == Layerwise::adafactor)
    row[3] = static_cast<float>(raised(static_cast<double>(updates + 1), -0.8));
}

void HyperNumbers::correct_nadam(int64_t updates, float* row) {
  if (updates + 1 < product_of_) {
    product_of_ = 0;
    product_ = 1;
  }
  while (product_of_ < updates + 1) product_ *= momentum_at(spec_.beta1, ++product_of_);
  const double next = momentum_at(spec_.beta1, updates + 2);
  row[1] = static_cast<float>((1.0 - momentum_at(spec_.beta1, updates + 1)) / (1.0 - product_));
  row[3] = static_cast<float>(next / (1.0 - product_ * next));
}

// Before the variance of the averages is known well enough the update goes without them.
void HyperNumbers::correct_radam(int64_t updates, float* row) const {
  const double c2 = corrected(spec_.beta2, updates + 1);
  const double most = 2.0 / (1.0 - static_cast<double>(spec_.beta2)) - 1.0;
  const double length = most - 2.0 * static_cast<double>(updates + 1) * (1.0 - c2) / c2;
  if (length <= 5.0) return;
  const double rectified =
      ((length - 4.0) * (length - 2.0) * most) / ((most - 4.0) * (most - 2.0) * length);
  row[3] = static_cast<float>(std::sqrt(rectified * c2));
}

}  // namespace loom::core
