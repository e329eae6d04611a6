// The numbers that every update of a step reads (OptimizeArgs::hyper): the learning rate and what
// corrects the moments, once for each factor of the learning rate. Functions of the rate and of how
// many updates there were, so that a run that is resumed has the same.
#pragma once

#include <vector>

#include "learn/optimizer/optimizer.hpp"
#include "learn/step/param_rules.hpp"

namespace loom::core {

class HyperNumbers {
 public:
  HyperNumbers() : HyperNumbers(Optimizer{}, {}) {}
  HyperNumbers(const Optimizer& optimizer, const std::vector<ParamRule>& rules);

  // Rows of numbers: one for each factor, the first of factor 1; then OptimizerDef::extra_rows.
  int64_t rows() const;
  int64_t row_of(const ParamRule& rule) const;
  // Writes [rows(), 4] for the update after `updates` others. False: they are what they were.
  bool fill(double rate, int64_t updates, float* to);
  // Forgets the written values: the next fill() is true.
  void forget() { filled_ = false; }

 private:
  Optimizer constants_;
  const OptimizerDef* def_;
  std::vector<double> factors_ = {1.0};
  std::vector<float> last_ = std::vector<float>(4);
  bool filled_ = false;
  ScalarCache cache_;
};

}  // namespace loom::core
