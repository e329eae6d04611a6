// The numbers that every update of a step reads (OptimizeArgs::hyper): the learning rate and what
// corrects the moments, once for each factor of the learning rate. Functions of the rate and of how
// many updates there were, so that a run that is resumed has the same.
#pragma once

#include <vector>

#include "learn/param_rules.hpp"
#include "learn/spec.hpp"

namespace loom::core {

class HyperNumbers {
 public:
  HyperNumbers() = default;
  HyperNumbers(const OptimizerSpec& spec, const std::vector<ParamRule>& rules);

  // Rows of numbers: one for each factor, the first of factor 1. Then of lamb one with a rate of 1;
  // of adafactor one whose rate moves the means of squares, and one for each factor with the rate
  // of the decay.
  int64_t rows() const;
  int64_t row_of(const ParamRule& rule) const;
  // Writes [rows(), 4] for the update after `updates` others. False: they are what they were.
  bool fill(double rate, int64_t updates, float* to);
  // What was written is gone: the next fill() is true.
  void forget() { filled_ = false; }

 private:
  void correct(int64_t updates, float* row);
  void fill_layerwise(double rate, int64_t updates, float* to) const;
  void correct_nadam(int64_t updates, float* row);
  void correct_radam(int64_t updates, float* row) const;

  OptimizerSpec spec_;
  std::vector<double> factors_ = {1.0};
  std::vector<float> last_ = std::vector<float>(4);
  bool filled_ = false;
  int64_t product_of_ = 0;  // u(1) ... u(product_of_) of nadam
  double product_ = 1;
};

}  // namespace loom::core
