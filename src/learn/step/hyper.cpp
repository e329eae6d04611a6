#include "learn/step/hyper.hpp"

#include <algorithm>

namespace loom::core {

HyperNumbers::HyperNumbers(const Optimizer& optimizer, const std::vector<ParamRule>& rules)
    : constants_(resolved(optimizer)), def_(&optimizer_def(optimizer.kind)) {
  for (const ParamRule& rule : rules) {
    if (std::find(factors_.begin(), factors_.end(), rule.factor) == factors_.end())
      factors_.push_back(rule.factor);
  }
}

int64_t HyperNumbers::rows() const {
  const auto factors = static_cast<int64_t>(factors_.size());
  return factors + (def_->extra_rows != nullptr ? def_->extra_rows(factors) : 0);
}

int64_t HyperNumbers::row_of(const ParamRule& rule) const {
  return std::find(factors_.begin(), factors_.end(), rule.factor) - factors_.begin();
}

// Kinds without corrections have the same numbers at every step, so nothing is sent while the rate
// stays.
bool HyperNumbers::fill(double rate, int64_t updates, float* to) {
  to[0] = static_cast<float>(rate);
  to[1] = to[2] = 1.0f;
  to[3] = 0.0f;
  if (def_->scalars != nullptr) def_->scalars(constants_, updates + 1, to, cache_);
  const bool same = filled_ && def_->fill_extra == nullptr;
  if (same && std::equal(to, to + 4, last_.begin())) return false;
  std::copy_n(to, 4, last_.begin());
  filled_ = true;
  for (size_t i = 1; i < factors_.size(); ++i) {
    float* const own = to + 4 * i;
    std::copy_n(to, 4, own);
    own[0] = static_cast<float>(rate * factors_[i]);
  }
  if (def_->fill_extra != nullptr)
    def_->fill_extra({rate, updates, factors_, to, to + 4 * factors_.size()});
  return true;
}

}  // namespace loom::core
