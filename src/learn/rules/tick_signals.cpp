#include "learn/rules/tick_signals.hpp"

#include <set>

#include "base/text.hpp"
#include "learn/rules/budgets.hpp"
#include "learn/rules/signal_builder.hpp"
#include "learn/rules/signal_planner.hpp"
#include "learn/rules/tick_builder.hpp"

namespace loom::core {

TickSignals::TickSignals(Trace& to, const Network& of, const TrainStepOptions& how,
                         StepTensors& step)
    : trace(to),
      s(to),
      network(of),
      options(how),
      t(step),
      pass(*how.ticks),
      def_(rule_def(how.rule.kind)) {
  made.assign(pass.values.size(), std::vector<Tensor>(pass.slots.size()));
}

void TickSignals::each_firing(auto&& f) {
  for (size_t now = 1; now < pass.values.size(); ++now) {
    for (size_t k = 0; k < pass.slots.size(); ++k) {
      if (pass.slots[k].learns()) f(k, now);
    }
  }
}

Status TickSignals::record(const Tensor& dy) {
  if (def_.direct != nullptr) {
    LOOM_ASSIGN(const Tensor from, def_.direct(s, options, t, dy));
    return direct(from, dy);
  }
  return def_.ticks != nullptr ? def_.ticks(*this, dy) : exact(dy, made);
}

Status TickSignals::exact(const Tensor& dy, std::vector<std::vector<Tensor>>& to) {
  Differentiator probe(trace);
  each_firing([&](size_t k, size_t now) { probe.want(pass.values[now][k]); });
  probe.seed(t.network.y, dy);
  for (const AddedLoss& added : t.network.losses) {
    LOOM_ASSIGN(const Tensor weight, s.number(added.weight));
    probe.seed(added.value, weight);
  }
  LOOM_TRY(probe.run());
  each_firing([&](size_t k, size_t now) { to[now][k] = probe.gradient(pass.values[now][k]); });
  return {};
}

Status TickSignals::hand_to(Differentiator& d, const Tensor& dy) {
  const auto out = static_cast<size_t>(pass.output);
  Tensor top = dy;
  if (def_.damped) {
    LOOM_ASSIGN(top, damped(s, options, dy));
  }
  std::set<const std::byte*> given;
  const auto give = [&](size_t k, size_t now, const Tensor& signal) {
    const Tensor& h = pass.values[now][k];
    if (!given.insert(h.data).second) return;
    signal.empty() ? d.block(h) : d.replace(h, signal);
  };
  for (size_t now = 1; now < pass.values.size(); ++now) {
    if (!pass.slots[out].identity) give(out, now, part(top, out, now));
  }
  each_firing([&](size_t k, size_t now) {
    if (k != out) give(k, now, made[now][k]);
  });
  return {};
}

Result<Tensor> TickSignals::together(size_t k, const std::vector<std::vector<Tensor>>& of) {
  const Shape& one = pass.slots[k].out;
  const Tensor all = s.fresh(Shape{pass.ticks() * one.rows(), one.last()});
  for (size_t now = 1; now < of.size(); ++now) {
    const Tensor to = all.slice_rows(static_cast<int64_t>(now - 1) * one.rows(), one.rows());
    if (of[now][k].empty()) {
      LOOM_TRY(s.ops().fill({to, 0.0f}));
    } else {
      LOOM_TRY(s.ops().unary({as_matrix(of[now][k], one.rows(), one.last()), to}));
    }
  }
  return all;
}

Tensor TickSignals::part(const Tensor& all, size_t k, size_t now) const {
  const Shape& one = pass.slots[k].out;
  Tensor one_tick = all.slice_rows(static_cast<int64_t>(now - 1) * one.rows(), one.rows());
  one_tick.shape = one;
  one_tick.row_stride = one.last();
  return one_tick;
}

Status TickSignals::direct(const Tensor& from, const Tensor& dy) {
  const auto out = static_cast<size_t>(pass.output);
  for (const SignalCut& cut : t.plan->cuts) {
    const auto k = static_cast<size_t>(cut.slot);
    const int64_t ahead = pass.steady ? 0 : pass.slots[out].fill - pass.slots[k].fill;
    for (int64_t now = 1; now <= pass.ticks(); ++now) {
      const int64_t then = now + ahead;
      if (then < 1 || then > pass.ticks()) continue;
      const Tensor e = part(from, out, static_cast<size_t>(then));
      const int64_t rows = e.shape.count() / cut.random.shape[0];
      const Tensor signal = s.fresh(Shape{rows, cut.random.cols()});
      LOOM_TRY(s.ops().gemm({as_matrix(e, rows, cut.random.shape[0]), cut.random, signal}));
      made[static_cast<size_t>(now)][k] = shaped(signal, k);
    }
  }
  for (size_t now = 1; now < made.size(); ++now) made[now][out] = part(dy, out, now);
  return {};
}

Tensor TickSignals::shaped(Tensor signal, size_t k) const {
  signal.shape = pass.slots[k].out;
  signal.row_stride = signal.shape.last();
  return signal;
}

namespace {

Status check_tick_rule(const Network& network, const TrainStepOptions& options) {
  const RuleSpec& r = options.rule;
  const RuleDef& def = rule_def(r.kind);
  const std::string the_rule = cat("the rule ", rule_name(r.kind));
  if (!def.has_ticks())
    return invalid(
        cat(the_rule, " has no form through ticks; there are ", rules_with(&RuleDef::has_ticks)));
  LOOM_TRY(check_rule(r));
  if (r.has_budgets() && options.gathers())
    return invalid("budgets weigh the gradients of one window; set accumulate to 1");
  if (options.ticks->steady && !def.steady())
    return invalid(cat(the_rule, " follows a sample from tick to tick; steady is for ",
                       rules_with(&RuleDef::steady)));
  if (!network.more_outputs().empty())
    return invalid(cat(the_rule, " is for networks of one output"));
  return {};
}

}  // namespace

Result<SignalPlan> make_tick_plan(const Network& network, const TrainStepOptions& options,
                                  std::vector<Buffer>& memory) {
  LOOM_TRY(check_tick_rule(network, options));
  const TickPass& pass = *options.ticks;
  const auto out = static_cast<size_t>(pass.output);
  const bool random = rule_def(options.rule.kind).direct != nullptr;
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
    if (rows->from > kMaxRuleNumbers / rows->to)
      return invalid(cat(slot.name, " would need a matrix of ", rows->from, " x ", rows->to,
                         " numbers; at most ", kMaxRuleNumbers, " are made"));
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
  const bool as_it_is = rule_def(options.rule.kind).gradients;
  TickSignals signals(trace, network, options, t);
  LOOM_TRY(signals.record(dy));
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
      LOOM_ASSIGN(s, signals.together(k, signals.made));
      LOOM_ASSIGN(g, signals.together(k, gradients));
    }
    links.outputs.push_back(h);
    links.signals.push_back(s);
    if (options.rule.stats && !as_it_is) links.exact.push_back(g);
  }
  return record_budgets(trace, options, t, links);
}

}  // namespace loom::core
