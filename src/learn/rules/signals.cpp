#include "learn/rules/signals.hpp"

#include <cmath>

#include "base/text.hpp"
#include "learn/rules/budgets.hpp"
#include "learn/rules/tick_signals.hpp"

namespace loom::core {
namespace {

class Signals {
 public:
  Signals(Trace& trace, const Network& network, const TrainStepOptions& options,
          const StepTensors& t)
      : trace_(trace),
        s_(trace),
        network_(network),
        options_(options),
        t_(t),
        cuts_(t.plan->cuts),
        batch_(t.network.x.shape[0]) {}

  // The signals of all blocks, that of the prediction last. Empty: no path from the loss.
  Result<std::vector<Tensor>> record(const Tensor& dy) {
    made_.assign(cuts_.size() + 1, {});
    LOOM_ASSIGN(made_.back(), at_top(dy));
    if (options_.rule.kind == Rule::chain) {
      LOOM_TRY(gradients(dy, made_));
      return std::move(made_);
    }
    for (size_t i = cuts_.size(); i-- > 0;) {
      Result<Tensor> signal = at(i, dy);
      if (!signal.ok()) return signal.error();
      made_[i] = *signal;
      const Tensor& h = output(i);
      made_[i].shape = h.shape;
      made_[i].row_stride = h.shape.last();
    }
    if (options_.rule.kind == Rule::dtp) LOOM_TRY(train_inverses());
    return std::move(made_);
  }

  // dL/dh of every cut, into the first of `all`: back-propagation, for its bits beside others.
  Status gradients(const Tensor& dy, std::vector<Tensor>& all) {
    Differentiator probe(trace_);
    for (size_t i = 0; i < cuts_.size(); ++i) probe.want(output(i));
    probe.seed(t_.network.y, dy);
    for (const AddedLoss& added : t_.network.losses) {
      LOOM_ASSIGN(const Tensor weight, s_.number(added.weight));
      probe.seed(added.value, weight);
    }
    LOOM_TRY(probe.run());
    for (size_t i = 0; i < cuts_.size(); ++i) all[i] = probe.gradient(output(i));
    return {};
  }

  const Tensor& output(size_t i) const {
    return i < cuts_.size() ? t_.network.outputs[cuts_[i].below] : t_.network.y;
  }

 private:
  // e, or what takes its place at the prediction.
  Result<Tensor> at_top(const Tensor& dy) {
    const Rule rule = options_.rule.kind;
    if (rule == Rule::hebb) return hebb_top(dy);
    const bool damped = rule == Rule::diff_project || rule == Rule::fixed_dtp;
    return damped ? s_.binary(dy, options_.rule.beta, BinaryKind::mul) : Result<Tensor>(dy);
  }

  Result<Tensor> at(size_t i, const Tensor& dy) {
    const Tensor& above = made_[i + 1];
    switch (options_.rule.kind) {
      case Rule::dfa: return direct(i, dy);
      case Rule::drtp: {
        if (minus_.empty()) {
          LOOM_ASSIGN(minus_, minus_targets(s_, options_, t_, dy));
        }
        return direct(i, minus_);
      }
      case Rule::diff_project: return cuts_[i].weight < 0 ? carried(i, above) : projected(i, above);
      case Rule::dtp: return i + 1 < cuts_.size() ? through_inverse(i, above) : through_last(i, dy);
      case Rule::hebb: return hebb(i);
      default: return through_inverse(i, above);
    }
  }

  // The signal at a cut, of the numbers `from` per row at the prediction.
  Result<Tensor> direct(size_t i, const Tensor& from) {
    const Tensor& random = cuts_[i].random;
    const int64_t rows = from.shape.count() / random.shape[0];
    return product(as_matrix(from, rows, random.shape[0]), random);
  }

  // s_k [rows, O] through W.
  Result<Tensor> projected(size_t i, const Tensor& above) {
    LOOM_ASSIGN(const Tensor plain, plain_weight(i));
    LOOM_ASSIGN(const Tensor factors,
                column_factors(s_, plain, std::sqrt(static_cast<float>(plain.rows()))));
    LOOM_ASSIGN(const Tensor below,
                product(as_matrix(above, above.shape.count() / plain.rows(), plain.rows()), plain));
    return s_.binary(below, factors, BinaryKind::mul);
  }

  // `above` through block i + 1 as a gradient, whose activations hand it on as it is.
  Result<Tensor> carried(size_t i, const Tensor& above) {
    LOOM_ASSIGN(const Tensor below, through_block(i, above, false));
    const Tensor flat_below = as_matrix(below, 1, below.shape.count());
    const Tensor flat_above = as_matrix(above, 1, above.shape.count());
    LOOM_ASSIGN(const Tensor size_below, s_.norm(flat_below));
    LOOM_ASSIGN(const Tensor size_above, s_.norm(flat_above));
    constexpr float kMin = 1e-30f;
    const double ratio =
        static_cast<double>(below.shape.count()) / static_cast<double>(above.shape.count());
    LOOM_ASSIGN(const Tensor safe, s_.binary(size_below, kMin, BinaryKind::max));
    LOOM_ASSIGN(const Tensor share, s_.binary(size_above, safe, BinaryKind::div));
    LOOM_ASSIGN(const Tensor factor,
                s_.binary(share, static_cast<float>(std::sqrt(ratio)), BinaryKind::mul));
    return s_.binary(flat_below, factor, BinaryKind::mul);
  }

  Result<Tensor> through_block(size_t i, const Tensor& above, bool slopes) {
    Differentiator probe(trace_);
    if (!slopes) probe.through_activations();
    probe.want(output(i));
    probe.seed(output(i + 1), above);
    LOOM_TRY(probe.run());
    const Tensor below = probe.gradient(output(i));
    if (!below.empty()) return below;
    return invalid(cat("the rule ", rule_name(options_.rule.kind), ": ", cuts_[i].name,
                       " has no influence on what follows"));
  }

  Result<Tensor> through_last(size_t i, const Tensor& dy) {
    LOOM_ASSIGN(const Tensor exact, through_block(i, dy, true));
    return s_.binary(as_matrix(exact, 1, exact.shape.count()), options_.rule.beta, BinaryKind::mul);
  }

  // s_k through the difference of the inverse at h and at its target.
  Result<Tensor> through_inverse(size_t i, const Tensor& above) {
    const Tensor& upper = output(i + 1);
    const auto n = static_cast<float>(t_.network.y.rows());
    const int64_t from = upper.shape.count() / batch_;
    const Tensor h = as_matrix(upper, batch_, from), s = as_matrix(above, batch_, from);
    LOOM_ASSIGN(const Tensor whole, s_.binary(s, n, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor target, s_.binary(h, whole, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor was, inverse(cuts_[i], h));
    LOOM_ASSIGN(const Tensor local_target, inverse(cuts_[i], target));
    LOOM_ASSIGN(const Tensor difference, s_.binary(was, local_target, BinaryKind::sub));
    return s_.binary(difference, 1.0f / n, BinaryKind::mul);
  }

  Result<Tensor> inverse(const SignalCut& cut, const Tensor& v) {
    LOOM_ASSIGN(Tensor z, product(v, cut.random));
    if (!cut.bias.empty()) {
      LOOM_ASSIGN(z, s_.binary(z, as_matrix(cut.bias, 1, z.cols()), BinaryKind::add));
    }
    return s_.unary(z, UnaryKind::tanh);
  }

  Status train_inverses() {
    LOOM_ASSIGN(Tensor sum, s_.number(0.0f));
    if (!t_.loss.empty()) sum = t_.loss;
    finite_ = s_.fresh(Shape{1, 1});
    LOOM_TRY(s_.guard(t_.numbers, sum, finite_));
    for (size_t i = 0; i + 1 < cuts_.size(); ++i) LOOM_TRY(train_inverse(i));
    return {};
  }

  // Gradient of the mean of (g(f(h + u)) - (h + u))^2, and its step.
  Status train_inverse(size_t i) {
    const SignalCut& cut = cuts_[i];
    const Tensor& h = output(i);
    const Tensor noise = s_.fresh(h.shape);
    LOOM_TRY(s_.ops().random({noise, t_.network.step, options_.seed,
                              kSignalStream + (uint64_t{1} << 32) + i, RandomKind::normal}));
    LOOM_ASSIGN(const Tensor small, s_.binary(noise, options_.rule.noise, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor noisy, s_.binary(h, small, BinaryKind::add));
    LOOM_ASSIGN(Tensor v, run_again(trace_, network_, options_, t_, cut.above,
                                    cuts_[i + 1].below + 1, noisy));
    v = as_matrix(v, batch_, v.shape.count() / batch_);
    const int64_t width = cut.random.cols();
    LOOM_ASSIGN(const Tensor back, inverse(cut, v));
    LOOM_ASSIGN(const Tensor gap,
                s_.binary(back, as_matrix(noisy, batch_, width), BinaryKind::sub));
    const float share = 2.0f / static_cast<float>(batch_ * width);
    LOOM_ASSIGN(const Tensor dg, s_.binary(gap, share, BinaryKind::mul));
    const Tensor dz = s_.fresh(dg.shape);
    LOOM_TRY(s_.ops().unary_dx({back, dg, dz, UnaryKind::tanh, true}));
    const Tensor dv = s_.fresh(cut.random.shape), dc = s_.fresh(cut.bias.shape);
    LOOM_TRY(s_.ops().gemm({v, dz, dv, true}));
    LOOM_TRY(s_.ops().reduce_cols({dz, dc}));
    LOOM_TRY(move(cut.random, dv, cut.random_v));
    return move(cut.bias, dc, cut.bias_v);
  }

  Status move(const Tensor& p, const Tensor& g, const Tensor& v) {
    OptimizeArgs o;
    o.p = p;
    o.g = g;
    o.v = v;
    o.kind = UpdateKind::rmsprop;
    o.beta2 = 0.99f;
    o.scale = finite_;
    o.hyper = s_.fresh(Shape{4});
    LOOM_TRY(s_.ops().fill({o.hyper, options_.rule.inverse_rate}));
    return s_.ops().optimize(o);
  }

  Tensor row_weights() const { return as_matrix(t_.weight, t_.weight.shape.count(), 1); }

  // w (y - t); the target itself is kept for the cut below.
  Result<Tensor> hebb_top(const Tensor& dy) {
    LOOM_ASSIGN(const Tensor minus, minus_targets(s_, options_, t_, dy));
    LOOM_ASSIGN(const Tensor safe, s_.binary(row_weights(), 1e-12f, BinaryKind::max));
    LOOM_ASSIGN(const Tensor negative, s_.binary(minus, safe, BinaryKind::div));
    LOOM_ASSIGN(target_, s_.unary(negative, UnaryKind::neg));
    return away_from(as_matrix(t_.network.y, dy.rows(), dy.cols()));
  }
  Result<Tensor> hebb(size_t i) {
    LOOM_ASSIGN(const Tensor plain, plain_weight(i));
    LOOM_ASSIGN(const Tensor factors, column_factors(s_, plain, 1.0f));
    LOOM_ASSIGN(const Tensor below, product(target_, plain));
    LOOM_ASSIGN(target_, s_.binary(below, factors, BinaryKind::mul));
    return away_from(as_matrix(output(i), target_.rows(), target_.cols()));
  }
  Result<Tensor> away_from(const Tensor& h) {
    LOOM_ASSIGN(const Tensor gap, s_.binary(h, target_, BinaryKind::sub));
    return s_.binary(gap, row_weights(), BinaryKind::mul);
  }

  Result<Tensor> product(const Tensor& a, const Tensor& b) {
    const Tensor y = s_.fresh(Shape{a.rows(), b.cols()});
    LOOM_TRY(s_.ops().gemm({a, b, y}));
    return y;
  }

  Result<Tensor> plain_weight(size_t i) {
    const Tensor& weight = network_.params()[static_cast<size_t>(cuts_[i].weight)].tensor;
    const Tensor plain = s_.fresh(Shape{weight.shape[0], weight.shape[1]});
    LOOM_TRY(s_.ops().convert({weight, plain}));
    return plain;
  }

  Trace& trace_;
  TraceBuilder s_;
  const Network& network_;
  const TrainStepOptions& options_;
  const StepTensors& t_;
  const std::vector<SignalCut>& cuts_;
  int64_t batch_;
  std::vector<Tensor> made_;
  Tensor minus_;   // -w t, once for all cuts
  Tensor target_;  // of hebb, at the cut in hand
  Tensor finite_;  // 1, or NaN where the step is dropped
};

}  // namespace

Result<Tensor> column_factors(TraceBuilder& s, const Tensor& plain, float share) {
  constexpr float kMin = 0.01f;
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
  return s.binary(kept, share, BinaryKind::mul);
}

// Of classes t is what the gradient of softmax and cross-entropy, w (p - t), leaves when w p is
// taken away: no label is looked at, and those that count nothing have weight 0.
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
  if (t.plan == nullptr || (rule == Rule::back_propagation && !options.rule.stats)) return {};
  if (options.ticks != nullptr) return record_tick_signals(trace, network, options, t, dy, d);
  const bool needs_targets = rule == Rule::drtp || rule == Rule::hebb;
  if (needs_targets && t.targets.empty()) {
    return invalid(cat(rule_name(rule),
                       " projects targets, which a loss of the caller's own does "
                       "not give"));
  }
  const std::vector<SignalCut>& cuts = t.plan->cuts;
  Signals signals(trace, network, options, t);
  LinkTensors links;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    links.outputs.push_back(signals.output(i));
    if (i < cuts.size()) LOOM_TRY(check_whole(trace, cuts[i], signals.output(i), rule));
  }
  const bool exact = rule == Rule::back_propagation || rule == Rule::chain;
  if (options.rule.stats && !exact) {
    links.exact.assign(cuts.size() + 1, dy);
    LOOM_TRY(signals.gradients(dy, links.exact));
  }
  if (rule == Rule::back_propagation) {
    links.signals.assign(cuts.size() + 1, dy);
    LOOM_TRY(signals.gradients(dy, links.signals));
    return record_budgets(trace, options, t, links);
  }
  LOOM_ASSIGN(links.signals, signals.record(dy));
  if (rule == Rule::hebb) d.through_activations();
  const bool own_top = links.signals.back().data != dy.data;
  if (own_top) d.replace(t.network.y, links.signals.back());
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (!links.signals[i].empty()) d.replace(links.outputs[i], links.signals[i]);
  }
  return record_budgets(trace, options, t, links);
}

}  // namespace loom::core
