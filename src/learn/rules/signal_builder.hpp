// Records signals, last cut first. Rows of rules call it. Private to the folder.
#pragma once

#include "learn/rules/rule.hpp"
#include "learn/rules/signals.hpp"

namespace loom::core {

class SignalBuilder {
 public:
  SignalBuilder(Trace& to, const Network& of, const TrainStepOptions& how, const StepTensors& step)
      : trace(to),
        s(to),
        network(of),
        options(how),
        t(step),
        cuts(step.plan->cuts),
        batch(step.network.x.shape[0]),
        def_(rule_def(how.rule.kind)) {}

  // The signals of all blocks, that of the prediction last, or none without a path from the loss.
  Result<std::vector<Tensor>> record(const Tensor& dy);
  // dL/dh of every cut, into the first of `all`: back-propagation, for its bits beside others.
  Status gradients(const Tensor& dy, std::vector<Tensor>& all);
  // The output at cut i, or the prediction.
  const Tensor& output(size_t i) const {
    return i < cuts.size() ? t.network.outputs[cuts[i].below] : t.network.y;
  }

  // For RuleDef::below.

  // The signal of the block above cut i.
  const Tensor& above(size_t i) const { return made_[i + 1]; }
  // That signal through the block as a gradient. slopes: with those of activations.
  Result<Tensor> through_block(size_t i, bool slopes);
  Result<Tensor> product(const Tensor& a, const Tensor& b);
  const Tensor& weight_above(size_t i) const;  // of the Dense; SignalCut::weight is set
  Tensor row_weights() const { return as_matrix(t.weight, t.weight.shape.count(), 1); }

  Trace& trace;
  TraceBuilder s;
  const Network& network;
  const TrainStepOptions& options;
  const StepTensors& t;
  const std::vector<SignalCut>& cuts;
  int64_t batch;
  Tensor carried;  // a tensor that a rule passes from cut to cut

 private:
  Result<Tensor> top(const Tensor& dy);
  Result<Tensor> direct(size_t i, const Tensor& dy);

  const RuleDef& def_;
  std::vector<Tensor> made_;
  Tensor direct_;  // RuleDef::direct, once for all cuts
};

// beta e, of rules that are damped.
Result<Tensor> damped(TraceBuilder& s, const TrainStepOptions& options, const Tensor& dy);

// The weight of a Dense.
struct NormalizedWeight {
  Tensor plain;    // W [O, I] as numbers
  Tensor factors;  // [1, I]: share / sum_o |W_oi|; 0 if that sum is 0.01 or less
};
Result<NormalizedWeight> normalized(TraceBuilder& s, const Tensor& weight, float share);
// Rows of O numbers through W, as rows of I numbers.
Result<Tensor> project(TraceBuilder& s, const NormalizedWeight& w, const Tensor& above);
// `below` as one row, scaled to the root mean square of `above`.
Result<Tensor> scaled_as(TraceBuilder& s, const Tensor& below, const Tensor& above);

}  // namespace loom::core
