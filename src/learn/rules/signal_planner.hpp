// Checks of a rule against a network, and its SignalPlan. Rows of rules call it. Private to the
// folder.
#pragma once

#include <string_view>

#include "learn/rules/rule.hpp"
#include "learn/rules/signals.hpp"

namespace loom::core {

class SignalPlanner {
 public:
  SignalPlanner(const Network& of, const TrainStepOptions& how, std::vector<Buffer>& to,
                std::vector<StateTensor>& trained)
      : network(of), options(how), def_(rule_def(how.rule.kind)), memory_(to), state_(trained) {}

  Result<SignalPlan> make();

  // For RuleDef::plan and RuleDef::plan_cut.

  // "the rule dfa: cell (0, 0, 1, 0) (Dense) WHY".
  Error refused(size_t cell, std::string_view why) const;
  // The parameter that is the weight of the block above cut i, if that is one Dense; else -1.
  int dense_above(size_t i) const;
  // Cut i has a block above it with a cut of its own.
  bool has_upper_cut(size_t i) const { return i + 1 < plan.cuts.size(); }
  // SignalCut::random from numbers of the prediction, or of the output of the block above.
  Status fill_from_prediction(size_t i);
  Status fill_from_block(size_t i);
  // The same as fill_from_block(), with a bias, and both are trained.
  Status fill_trained(size_t i);
  Result<Tensor> random(const Shape& shape, size_t stream);

  const Network& network;
  const TrainStepOptions& options;
  SignalPlan plan;

 private:
  Status check() const;
  Status cut();
  Status fill(SignalCut& at, const Shape& upper, bool by_sample);
  Shape upper_shape(size_t i) const;

  const RuleDef& def_;
  std::vector<Buffer>& memory_;
  std::vector<StateTensor>& state_;
};

constexpr int64_t kMaxRuleNumbers = int64_t{1} << 26;  // of one matrix

}  // namespace loom::core
