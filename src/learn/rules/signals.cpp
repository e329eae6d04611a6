#include "learn/rules/signals.hpp"

#include <cmath>

#include "base/text.hpp"
#include "learn/rules/budgets.hpp"
#include "learn/rules/signal_builder.hpp"
#include "learn/rules/tick_signals.hpp"

namespace loom::core {

Result<std::vector<Tensor>> SignalBuilder::record(const Tensor& dy) {
  made_.assign(cuts.size() + 1, {});
  LOOM_ASSIGN(made_.back(), top(dy));
  if (def_.gradients) {
    LOOM_TRY(gradients(dy, made_));
    return std::move(made_);
  }
  for (size_t i = cuts.size(); i-- > 0;) {
    Result<Tensor> signal = def_.direct != nullptr ? direct(i, dy) : def_.below(*this, i);
    if (!signal.ok()) return signal.error();
    made_[i] = *signal;
    const Tensor& h = output(i);
    made_[i].shape = h.shape;
    made_[i].row_stride = h.shape.last();
  }
  if (def_.after != nullptr) LOOM_TRY(def_.after(*this));
  return std::move(made_);
}

Status SignalBuilder::gradients(const Tensor& dy, std::vector<Tensor>& all) {
  Differentiator probe(trace);
  for (size_t i = 0; i < cuts.size(); ++i) probe.want(output(i));
  probe.seed(t.network.y, dy);
  for (const AddedLoss& added : t.network.losses) {
    LOOM_ASSIGN(const Tensor weight, s.number(added.weight));
    probe.seed(added.value, weight);
  }
  LOOM_TRY(probe.run());
  for (size_t i = 0; i < cuts.size(); ++i) all[i] = probe.gradient(output(i));
  return {};
}

Result<Tensor> SignalBuilder::top(const Tensor& dy) {
  if (def_.top != nullptr) return def_.top(*this, dy);
  return def_.damped ? damped(s, options, dy) : Result<Tensor>(dy);
}

Result<Tensor> SignalBuilder::direct(size_t i, const Tensor& dy) {
  if (direct_.empty()) {
    LOOM_ASSIGN(direct_, def_.direct(s, options, t, dy));
  }
  const Tensor& random = cuts[i].random;
  const int64_t rows = direct_.shape.count() / random.shape[0];
  return product(as_matrix(direct_, rows, random.shape[0]), random);
}

Result<Tensor> SignalBuilder::through_block(size_t i, bool slopes) {
  Differentiator probe(trace);
  if (!slopes) probe.through_activations();
  probe.want(output(i));
  probe.seed(output(i + 1), above(i));
  LOOM_TRY(probe.run());
  const Tensor below = probe.gradient(output(i));
  if (!below.empty()) return below;
  return invalid(cat("the rule ", rule_name(options.rule.kind), ": ", cuts[i].name,
                     " has no influence on what follows"));
}

Result<Tensor> SignalBuilder::product(const Tensor& a, const Tensor& b) {
  const Tensor y = s.fresh(Shape{a.rows(), b.cols()});
  LOOM_TRY(s.ops().gemm({a, b, y}));
  return y;
}

const Tensor& SignalBuilder::weight_above(size_t i) const {
  return network.params()[static_cast<size_t>(cuts[i].weight)].tensor;
}

Result<Tensor> damped(TraceBuilder& s, const TrainStepOptions& options, const Tensor& dy) {
  return s.binary(dy, options.rule.beta, BinaryKind::mul);
}

Result<Tensor> project(TraceBuilder& s, const NormalizedWeight& w, const Tensor& above) {
  const int64_t rows = above.shape.count() / w.plain.rows();
  const Tensor below = s.fresh(Shape{rows, w.plain.cols()});
  LOOM_TRY(s.ops().gemm({as_matrix(above, rows, w.plain.rows()), w.plain, below}));
  return s.binary(below, w.factors, BinaryKind::mul);
}

Result<Tensor> scaled_as(TraceBuilder& s, const Tensor& below, const Tensor& above) {
  constexpr float kMin = 1e-30f;
  const Tensor flat_below = as_matrix(below, 1, below.shape.count());
  const Tensor flat_above = as_matrix(above, 1, above.shape.count());
  LOOM_ASSIGN(const Tensor size_below, s.norm(flat_below));
  LOOM_ASSIGN(const Tensor size_above, s.norm(flat_above));
  LOOM_ASSIGN(const Tensor safe, s.binary(size_below, kMin, BinaryKind::max));
  LOOM_ASSIGN(const Tensor share, s.binary(size_above, safe, BinaryKind::div));
  const double ratio =
      static_cast<double>(below.shape.count()) / static_cast<double>(above.shape.count());
  LOOM_ASSIGN(const Tensor factor,
              s.binary(share, static_cast<float>(std::sqrt(ratio)), BinaryKind::mul));
  return s.binary(flat_below, factor, BinaryKind::mul);
}

Result<NormalizedWeight> normalized(TraceBuilder& s, const Tensor& weight, float share) {
  constexpr float kMin = 0.01f;
  const Tensor plain = s.fresh(Shape{weight.shape[0], weight.shape[1]});
  LOOM_TRY(s.ops().convert({weight, plain}));
  LOOM_ASSIGN(const Tensor sizes, s.unary(plain, UnaryKind::abs));
  const Tensor column = s.fresh(Shape{plain.cols()});
  LOOM_TRY(s.ops().reduce_cols({sizes, column}));
  const Tensor sums = as_matrix(column, 1, plain.cols());
  LOOM_ASSIGN(const Tensor beyond, s.binary(sums, kMin, BinaryKind::sub));
  LOOM_ASSIGN(const Tensor negated, s.unary(beyond, UnaryKind::neg));
  LOOM_ASSIGN(const Tensor small, s.unary(negated, UnaryKind::step));
  LOOM_ASSIGN(const Tensor minus, s.unary(small, UnaryKind::neg));
  LOOM_ASSIGN(const Tensor large, s.binary(minus, 1.0f, BinaryKind::add));
  LOOM_ASSIGN(const Tensor safe, s.binary(sums, kMin, BinaryKind::max));
  LOOM_ASSIGN(const Tensor inverses, s.unary(safe, UnaryKind::reciprocal));
  LOOM_ASSIGN(const Tensor kept, s.binary(inverses, large, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor factors, s.binary(kept, share, BinaryKind::mul));
  return NormalizedWeight{plain, factors};
}

// For classes, t is the gradient of softmax and cross-entropy, w (p - t), minus w p. No label is
// read, and samples that do not count have weight 0.
Result<Tensor> minus_targets(TraceBuilder& s, const TrainStepOptions& options, const StepTensors& t,
                             const Tensor& dy) {
  const Tensor weight = as_matrix(t.weight, t.weight.shape.count(), 1);
  const Tensor all = s.fresh(dy.shape);
  int64_t first = 0;
  for (size_t head = 0; head < t.targets.size(); ++head) {
    const bool classes = options.loss.has_classes();
    const int64_t width = t.targets.size() > 1 ? options.loss.heads[head] : dy.cols();
    const Tensor part = slice_cols(all, first, width);
    if (classes) {
      const Tensor scores = as_matrix(t.network.y, dy.rows(), dy.cols());
      const Tensor p = s.fresh(Shape{dy.rows(), width});
      LOOM_TRY(s.ops().softmax({slice_cols(scores, first, width), p}));
      LOOM_ASSIGN(const Tensor weighted, s.binary(p, weight, BinaryKind::mul));
      LOOM_TRY(s.ops().binary({slice_cols(dy, first, width), weighted, part, BinaryKind::sub}));
    } else {
      LOOM_ASSIGN(const Tensor weighted, s.binary(t.targets[head], weight, BinaryKind::mul));
      LOOM_TRY(s.ops().unary({weighted, part, UnaryKind::neg}));
    }
    first += width;
  }
  return all;
}

Status check_whole(const Trace& trace, const SignalCut& cut, const Tensor& h, Rule rule) {
  const int64_t at = trace.find(h.data);
  const bool whole = at >= 0 && trace.tensor(at).data == h.data &&
                     trace.tensor(at).shape.count() == h.shape.count();
  if (whole) return {};
  return invalid(cat("the rule ", rule_name(rule), ": ", cut.name,
                     " hands on a part of what it computes; put it and the layer that follows into "
                     "one Sequential"));
}

Result<Tensor> run_again(Trace& trace, const Network& network, const TrainStepOptions& options,
                         const StepTensors& t, size_t begin, size_t end, const Tensor& x) {
  Recorder recorder(trace);
  const std::vector<Tensor> none;
  Pass pass;
  pass.network = &network;
  pass.recorder = &recorder;
  pass.tensor = [&](const Shape& shape) -> Result<Tensor> { return trace.fresh(shape); };
  pass.ropes = &t.network.ropes;
  pass.sequences = network.input()[0];
  pass.mask = t.network.mask;
  pass.ends = t.network.ends;
  pass.given = &none;
  pass.training = true;
  pass.seed = options.seed;
  pass.step = t.network.step;
  pass.partial = true;
  pass.present = t.network.present;
  return pass.run(begin, end, x);
}

Status record_signals(Trace& trace, const Network& network, const TrainStepOptions& options,
                      StepTensors& t, const Tensor& dy, Differentiator& d) {
  const Rule rule = options.rule.kind;
  const RuleDef& def = rule_def(rule);
  if (t.plan == nullptr || (def.end_to_end && !options.rule.stats)) return {};
  if (options.ticks != nullptr) return record_tick_signals(trace, network, options, t, dy, d);
  if (def.needs_targets && t.targets.empty()) {
    return invalid(cat(rule_name(rule),
                       " projects targets, which a loss of the caller's own does "
                       "not give"));
  }
  const std::vector<SignalCut>& cuts = t.plan->cuts;
  SignalBuilder signals(trace, network, options, t);
  LinkTensors links;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    links.outputs.push_back(signals.output(i));
    if (i < cuts.size()) LOOM_TRY(check_whole(trace, cuts[i], signals.output(i), rule));
  }
  if (options.rule.stats && !def.gradients) {
    links.exact.assign(cuts.size() + 1, dy);
    LOOM_TRY(signals.gradients(dy, links.exact));
  }
  if (def.end_to_end) {
    links.signals.assign(cuts.size() + 1, dy);
    LOOM_TRY(signals.gradients(dy, links.signals));
    return record_budgets(trace, options, t, links);
  }
  LOOM_ASSIGN(links.signals, signals.record(dy));
  if (def.linear_slopes) d.through_activations();
  const bool own_top = links.signals.back().data != dy.data;
  if (own_top) d.replace(t.network.y, links.signals.back());
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (!links.signals[i].empty()) d.replace(links.outputs[i], links.signals[i]);
  }
  return record_budgets(trace, options, t, links);
}

}  // namespace loom::core
