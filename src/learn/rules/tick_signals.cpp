#include "learn/rules/tick_signals.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.hpp"
#include "learn/rules/budgets.hpp"

namespace loom::core {
namespace {

class TickSignals {
 public:
  TickSignals(Trace& trace, const Network& network, const TrainStepOptions& options, StepTensors& t)
      : trace_(trace),
        s_(trace),
        network_(network),
        options_(options),
        t_(t),
        pass_(*options.ticks) {
    made_.assign(pass_.values.size(), std::vector<Tensor>(pass_.slots.size()));
  }

  // Signals of all slots and ticks; empty ones are zero.
  Status record(const Tensor& dy) {
    switch (options_.rule.kind) {
      case Rule::dfa: return direct(dy);
      case Rule::drtp: {
        LOOM_ASSIGN(const Tensor minus, minus_targets(s_, options_, t_, dy));
        return direct(minus, dy);
      }
      case Rule::diff_project: return projected(dy);
      default: return exact(dy, made_);
    }
  }

  // dL/dS_t[k].
  Status exact(const Tensor& dy, std::vector<std::vector<Tensor>>& to) {
    Differentiator probe(trace_);
    each_firing([&](size_t k, size_t now) { probe.want(pass_.values[now][k]); });
    probe.seed(t_.network.y, dy);
    for (const AddedLoss& added : t_.network.losses) {
      LOOM_ASSIGN(const Tensor weight, s_.number(added.weight));
      probe.seed(added.value, weight);
    }
    LOOM_TRY(probe.run());
    each_firing([&](size_t k, size_t now) { to[now][k] = probe.gradient(pass_.values[now][k]); });
    return {};
  }

  // The trained slot takes e alone, and others their signals: what readers add is left out.
  Status hand_to(Differentiator& d, const Tensor& dy) {
    const auto out = static_cast<size_t>(pass_.output);
    const bool damped = options_.rule.kind == Rule::diff_project;
    Tensor top = dy;
    if (damped) {
      LOOM_ASSIGN(top, s_.binary(dy, options_.rule.beta, BinaryKind::mul));
    }
    std::set<const std::byte*> given;
    const auto give = [&](size_t k, size_t now, const Tensor& signal) {
      const Tensor& h = pass_.values[now][k];
      if (!given.insert(h.data).second) return;
      signal.empty() ? d.block(h) : d.replace(h, signal);
    };
    for (size_t now = 1; now < pass_.values.size(); ++now) {
      if (!pass_.slots[out].identity) give(out, now, part(top, out, now));
    }
    each_firing([&](size_t k, size_t now) {
      if (k != out) give(k, now, made_[now][k]);
    });
    return {};
  }

  // All ticks of a slot as one matrix.
  Result<Tensor> together(size_t k, const std::vector<std::vector<Tensor>>& of) {
    const Shape& one = pass_.slots[k].out;
    const Tensor all = s_.fresh(Shape{pass_.ticks() * one.rows(), one.last()});
    for (size_t now = 1; now < of.size(); ++now) {
      const Tensor to = all.slice_rows(static_cast<int64_t>(now - 1) * one.rows(), one.rows());
      if (of[now][k].empty()) {
        LOOM_TRY(s_.ops().fill({to, 0.0f}));
      } else {
        LOOM_TRY(s_.ops().unary({as_matrix(of[now][k], one.rows(), one.last()), to}));
      }
    }
    return all;
  }
  const std::vector<std::vector<Tensor>>& made() const { return made_; }

 private:
  void each_firing(auto&& f) {
    for (size_t now = 1; now < pass_.values.size(); ++now) {
      for (size_t k = 0; k < pass_.slots.size(); ++k) {
        if (pass_.slots[k].learns()) f(k, now);
      }
    }
  }

  // Tick `now` of numbers that lie tick after tick, in the shape of what slot k commits.
  Tensor part(const Tensor& all, size_t k, size_t now) const {
    const Shape& one = pass_.slots[k].out;
    Tensor t = all.slice_rows(static_cast<int64_t>(now - 1) * one.rows(), one.rows());
    t.shape = one;
    t.row_stride = one.last();
    return t;
  }

  Status direct(const Tensor& from) { return direct(from, from); }
  Status direct(const Tensor& from, const Tensor& dy) {
    const auto out = static_cast<size_t>(pass_.output);
    for (const SignalCut& cut : t_.plan->cuts) {
      const auto k = static_cast<size_t>(cut.slot);
      const int64_t ahead = pass_.steady ? 0 : pass_.slots[out].fill - pass_.slots[k].fill;
      for (int64_t now = 1; now <= pass_.ticks(); ++now) {
        const int64_t then = now + ahead;
        if (then < 1 || then > pass_.ticks()) continue;
        const Tensor e = part(from, out, static_cast<size_t>(then));
        const int64_t rows = e.shape.count() / cut.random.shape[0];
        const Tensor signal = s_.fresh(Shape{rows, cut.random.cols()});
        LOOM_TRY(s_.ops().gemm({as_matrix(e, rows, cut.random.shape[0]), cut.random, signal}));
        made_[static_cast<size_t>(now)][k] = shaped(signal, k);
      }
    }
    for (size_t now = 1; now < made_.size(); ++now) made_[now][out] = part(dy, out, now);
    return {};
  }

  Tensor shaped(Tensor t, size_t k) const {
    t.shape = pass_.slots[k].out;
    t.row_stride = t.shape.last();
    return t;
  }

  Status projected(const Tensor& dy) {
    LOOM_ASSIGN(const Tensor top, s_.binary(dy, options_.rule.beta, BinaryKind::mul));
    const auto out = static_cast<size_t>(pass_.output);
    for (size_t now = made_.size() - 1; now >= 1; --now) {
      for (size_t k = 0; k < pass_.slots.size(); ++k) {
        if (k == out) {
          made_[now][k] = part(top, k, now);
        } else if (pass_.slots[k].fill >= 0 && now + 1 < made_.size()) {
          LOOM_TRY(mean_of_readers(k, now));
        }
      }
    }
    return {};
  }

  Status mean_of_readers(size_t k, size_t now) {
    Tensor sum;
    float count = 0;
    for (const int reader : pass_.slots[k].readers) {
      const auto j = static_cast<size_t>(reader);
      if (made_[now + 1][j].empty()) continue;
      LOOM_ASSIGN(const Tensor one, through(j, k, now));
      if (one.empty()) continue;
      ++count;
      if (sum.empty()) {
        sum = one;
      } else {
        LOOM_ASSIGN(sum, s_.binary(sum, one, BinaryKind::add));
      }
    }
    if (count > 1) {
      LOOM_ASSIGN(sum, s_.binary(sum, 1.0f / count, BinaryKind::mul));
    }
    if (!sum.empty()) made_[now][k] = shaped(sum, k);
    return {};
  }

  // The signal of slot j in the next tick, seen from slot k: a matrix.
  Result<Tensor> through(size_t j, size_t k, size_t now) {
    const Tensor& above = made_[now + 1][j];
    const TickSlot& slot = pass_.slots[j];
    if (slot.identity) return as_matrix(above, above.rows(), above.cols());
    if (slot.dense >= 0) return through_dense(j, above);
    return carried(pass_.values[now][k], pass_.values[now + 1][j], above);
  }

  Result<Tensor> through_dense(size_t j, const Tensor& above) {
    Projection& p = projections_[j];
    if (p.plain.empty()) {
      const Tensor& weight = network_.params()[static_cast<size_t>(pass_.slots[j].dense)].tensor;
      p.plain = s_.fresh(Shape{weight.shape[0], weight.shape[1]});
      LOOM_TRY(s_.ops().convert({weight, p.plain}));
      const float share = std::sqrt(static_cast<float>(weight.shape[0]));
      LOOM_ASSIGN(p.factors, column_factors(s_, p.plain, share));
    }
    const int64_t rows = above.shape.count() / p.plain.rows();
    const Tensor below = s_.fresh(Shape{rows, p.plain.cols()});
    LOOM_TRY(s_.ops().gemm({as_matrix(above, rows, p.plain.rows()), p.plain, below}));
    return s_.binary(below, p.factors, BinaryKind::mul);
  }

  // As a gradient, whose activations hand it on as it is; scaled to the root mean square of
  // `above`.
  Result<Tensor> carried(const Tensor& below, const Tensor& upper, const Tensor& above) {
    constexpr float kTiny = 1e-30f;
    Differentiator probe(trace_);
    probe.through_activations();
    probe.want(below);
    probe.seed(upper, above);
    LOOM_TRY(probe.run());
    const Tensor found = probe.gradient(below);
    if (found.empty()) return Tensor{};
    const Tensor flat = as_matrix(found, 1, found.shape.count());
    LOOM_ASSIGN(const Tensor size_below, s_.norm(flat));
    LOOM_ASSIGN(const Tensor size_above, s_.norm(as_matrix(above, 1, above.shape.count())));
    LOOM_ASSIGN(const Tensor safe, s_.binary(size_below, kTiny, BinaryKind::max));
    LOOM_ASSIGN(const Tensor share, s_.binary(size_above, safe, BinaryKind::div));
    const double ratio =
        static_cast<double>(below.shape.count()) / static_cast<double>(above.shape.count());
    LOOM_ASSIGN(const Tensor factor,
                s_.binary(share, static_cast<float>(std::sqrt(ratio)), BinaryKind::mul));
    LOOM_ASSIGN(const Tensor scaled, s_.binary(flat, factor, BinaryKind::mul));
    return as_matrix(scaled, below.rows(), below.cols());
  }

  struct Projection {
    Tensor plain, factors;
  };

  Trace& trace_;
  TraceBuilder s_;
  const Network& network_;
  const TrainStepOptions& options_;
  StepTensors& t_;
  const TickPass& pass_;
  std::vector<std::vector<Tensor>> made_;  // [tick][slot]
  std::map<size_t, Projection> projections_;
};

Status check_tick_rule(const Network& network, const TrainStepOptions& options) {
  const RuleSpec& r = options.rule;
  const std::string the_rule = cat("the rule ", rule_name(r.kind));
  using enum Rule;
  if (r.kind == fixed_dtp || r.kind == dtp || r.kind == forward_forward || r.kind == hebb)
    return invalid(
        cat(the_rule, " has no form through ticks; there are chain, dfa, drtp and diff-project"));
  if (r.has_beta() && !(r.beta > 0 && r.beta <= 1))
    return invalid(cat("beta is ", r.beta, ", must be above 0 and at most 1"));
  if (!(r.min_budget() >= 0 && r.min_budget() < 1))
    return invalid(cat("the gate is ", r.min_budget(), ", must be at least 0 and below 1"));
  if (r.has_budgets() && options.gathers())
    return invalid("budgets weigh the gradients of one window; set accumulate to 1");
  if (options.ticks->steady && r.kind != dfa && r.kind != drtp)
    return invalid(
        cat(the_rule, " follows a sample from tick to tick; steady is for dfa and drtp"));
  if (!network.more_outputs().empty())
    return invalid(cat(the_rule, " is for networks of one output"));
  return {};
}

}  // namespace

Result<SignalPlan> make_tick_plan(const Network& network, const TrainStepOptions& options,
                                  std::vector<Buffer>& memory) {
  LOOM_TRY(check_tick_rule(network, options));
  constexpr int64_t kMaxTickNumbers = int64_t{1} << 26;  // of one matrix
  const TickPass& pass = *options.ticks;
  const auto out = static_cast<size_t>(pass.output);
  const bool random = options.rule.kind == Rule::dfa || options.rule.kind == Rule::drtp;
  SignalPlan plan;
  plan.top = pass.slots[out].cell;
  plan.blocks.assign(network.params().size(), network.params().size() + pass.slots.size());
  for (size_t k = 0; k < pass.slots.size(); ++k) {
    const TickSlot& slot = pass.slots[k];
    if (!slot.learns() || k == out) continue;
    for (const int p : slot.params) plan.blocks[static_cast<size_t>(p)] = plan.cuts.size();
    SignalCut& cut = plan.cuts.emplace_back();
    cut.below = cut.above = slot.cell;
    cut.name = slot.name;
    cut.slot = static_cast<int>(k);
    if (!random) continue;
    const Result<RowPair> rows =
        rows_between(pass.slots[out].out, slot.out, network.input()[0], false);
    if (!rows.ok())
      return invalid(cat("the rule ", rule_name(options.rule.kind), ": ", slot.name, " ",
                         rows.error().message));
    if (rows->from > kMaxTickNumbers / rows->to)
      return invalid(cat(slot.name, " would need a matrix of ", rows->from, " x ", rows->to,
                         " numbers; at most ", kMaxTickNumbers, " are made"));
    LOOM_ASSIGN(cut.random,
                random_matrix(Shape{rows->from, rows->to}, options.seed, slot.cell, memory));
  }
  for (const int p : pass.slots[out].params) plan.blocks[static_cast<size_t>(p)] = plan.cuts.size();
  if (options.rule.stats) {
    const auto links = static_cast<int64_t>(plan.cuts.size() + 1);
    LOOM_ASSIGN(plan.stats, persistent(Shape{links, kLinkNumbers}, memory));
  }
  return plan;
}

Status record_tick_signals(Trace& trace, const Network& network, const TrainStepOptions& options,
                           StepTensors& t, const Tensor& dy, Differentiator& d) {
  const Rule rule = options.rule.kind;
  TickSignals signals(trace, network, options, t);
  LOOM_TRY(signals.record(dy));
  const bool as_it_is = rule == Rule::back_propagation || rule == Rule::chain;
  if (!as_it_is) LOOM_TRY(signals.hand_to(d, dy));
  if (!options.rule.has_budgets() && !options.rule.stats) return {};
  const TickPass& pass = *options.ticks;
  std::vector<std::vector<Tensor>> gradients(pass.values.size(),
                                             std::vector<Tensor>(pass.slots.size()));
  if (options.rule.stats && !as_it_is) LOOM_TRY(signals.exact(dy, gradients));
  LinkTensors links;
  std::vector<size_t> order;
  for (const SignalCut& cut : t.plan->cuts) order.push_back(static_cast<size_t>(cut.slot));
  order.push_back(static_cast<size_t>(pass.output));
  for (const size_t k : order) {
    LOOM_ASSIGN(const Tensor h, signals.together(k, pass.values));
    const bool top = static_cast<int>(k) == pass.output;
    Tensor s = dy, g = dy;
    if (!top) {
      LOOM_ASSIGN(s, signals.together(k, signals.made()));
      LOOM_ASSIGN(g, signals.together(k, gradients));
    }
    links.outputs.push_back(h);
    links.signals.push_back(s);
    if (options.rule.stats && !as_it_is) links.exact.push_back(g);
  }
  return record_budgets(trace, options, t, links);
}

}  // namespace loom::core
