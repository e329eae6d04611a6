// State of learning rules beside a network: its cuts, and matrices.
#include <cmath>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "learn/rules/budgets.hpp"
#include "learn/rules/signal_planner.hpp"
#include "learn/rules/tick_signals.hpp"

namespace loom::core {

Result<RowPair> rows_between(const Shape& from, const Shape& to, int64_t batch, bool by_sample) {
  const int64_t rows = from.rows();
  if (!by_sample && rows == to.rows()) return RowPair{from.last(), to.last()};
  if ((by_sample || rows == batch) && from.count() % batch == 0 && to.count() % batch == 0)
    return RowPair{from.count() / batch, to.count() / batch};
  return invalid("has neither a row per row of the prediction nor one prediction per sample");
}

Result<Tensor> random_matrix(const Shape& shape, uint64_t seed, uint64_t stream,
                             std::vector<Buffer>& memory) {
  LOOM_ASSIGN(Tensor b, persistent(shape, memory));
  const Rng rng(seed, kSignalStream + stream);
  const float most = std::sqrt(3.0f / static_cast<float>(shape[0]));
  for (int64_t i = 0; i < shape.count(); ++i)
    b.f32()[i] = (2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f) * most;
  return b;
}

namespace {

std::string named(const Network& network, size_t cell) {
  const GridNode& c = network.cells()[cell];
  return cat("cell ", c.at.str(), " (", c.node.config.def->name, ")");
}

bool has_params(const Node& node) {
  if (!node.params.empty()) return true;
  for (const Node& child : node.children) {
    if (has_params(child)) return true;
  }
  return false;
}

void note_block(const Node& node, size_t block, std::vector<size_t>& blocks) {
  for (const int p : node.params) blocks[static_cast<size_t>(p)] = block;
  for (const Node& child : node.children) note_block(child, block, blocks);
}

}  // namespace

Result<SignalPlan> SignalPlanner::make() {
  LOOM_TRY(check());
  LOOM_TRY(cut());
  if (def_.plan != nullptr) LOOM_TRY(def_.plan(*this));
  for (size_t i = 0; i < plan.cuts.size(); ++i) {
    if (def_.direct != nullptr) LOOM_TRY(fill_from_prediction(i));
    if (def_.plan_cut != nullptr) LOOM_TRY(def_.plan_cut(*this, i));
  }
  if (options.rule.stats) {
    const auto blocks = static_cast<int64_t>(plan.cuts.size() + 1);
    LOOM_ASSIGN(plan.stats, persistent(Shape{blocks, kLinkNumbers}, memory_));
  }
  return std::move(plan);
}

Error SignalPlanner::refused(size_t cell, std::string_view why) const {
  return invalid(
      cat("the rule ", rule_name(options.rule.kind), ": ", named(network, cell), " ", why));
}

Status SignalPlanner::check() const {
  const RuleSpec& r = options.rule;
  LOOM_TRY(check_rule(r));
  if (def_.needs_targets && options.loss.sequence())
    return invalid(cat(rule_name(r.kind),
                       " projects targets, and those of ctc have no place; "
                       "choose dfa"));
  if (!network.extra_inputs().empty() || !network.more_outputs().empty())
    return invalid(cat("the rule ", rule_name(r.kind), " is for networks of one input and output"));
  if (r.has_budgets() && options.gathers()) {
    const bool own = optimizer_def(options.optimizer.kind).gathers;
    return invalid(cat(
        "budgets weigh the gradients of one batch as they come; set accumulate to 1",
        own ? cat(" and take another optimizer than ", optimizer_name(options.optimizer.kind)) : "",
        ", or set the gate to 0"));
  }
  if ((r.has_budgets() || r.stats) && def_.contrast != nullptr)
    return invalid(
        cat(rule_name(r.kind), " has no targets, so no budgets; leave gate and stats out"));
  return {};
}

Status SignalPlanner::cut() {
  plan.blocks.assign(network.params().size(), 0);
  bool any = false;
  for (size_t i = 0; i < network.cells().size(); ++i) {
    if (network.cells()[i].link >= 0) return refused(i, "has a link; cells must follow each other");
    const Node& node = network.cells()[i].node;
    if (has_params(node)) {
      if (any) {
        SignalCut& made = plan.cuts.emplace_back();
        made.below = i - 1;
        made.above = i;
        made.name = named(network, i - 1);
      }
      any = true;
    }
    note_block(node, plan.cuts.size(), plan.blocks);
  }
  return {};
}

int SignalPlanner::dense_above(size_t i) const {
  const SignalCut& at = plan.cuts[i];
  const size_t last = has_upper_cut(i) ? plan.cuts[i + 1].below : network.cells().size() - 1;
  const Node& node = network.cells()[at.above].node;
  const bool dense = node.config.def->name == "Dense" && !node.config.disabled;
  return dense && last == at.above ? node.params[0] : -1;
}

// The output of the block above a cut: at the next cut, or the prediction.
Shape SignalPlanner::upper_shape(size_t i) const {
  return has_upper_cut(i) ? network.cells()[plan.cuts[i + 1].below].out : predictions_of(network);
}

Result<Tensor> SignalPlanner::random(const Shape& shape, size_t stream) {
  return random_matrix(shape, options.seed, stream, memory_);
}

Status SignalPlanner::fill(SignalCut& at, const Shape& upper, bool by_sample) {
  const Result<RowPair> rows =
      rows_between(upper, network.cells()[at.below].out, network.input()[0], by_sample);
  if (!rows.ok()) return refused(at.below, rows.error().message);
  if (rows->from > kMaxRuleNumbers / rows->to) {
    return refused(at.below, cat("would need a matrix of ", rows->from, " x ", rows->to,
                                 " numbers; at most ", kMaxRuleNumbers, " are made"));
  }
  LOOM_ASSIGN(at.random, random(Shape{rows->from, rows->to}, at.below));
  return {};
}

Status SignalPlanner::fill_from_prediction(size_t i) {
  return fill(plan.cuts[i], predictions_of(network), false);
}
Status SignalPlanner::fill_from_block(size_t i) {
  return fill(plan.cuts[i], upper_shape(i), true);
}

Status SignalPlanner::fill_trained(size_t i) {
  LOOM_TRY(fill_from_block(i));
  SignalCut& at = plan.cuts[i];
  LOOM_ASSIGN(at.bias, persistent(Shape{at.random.cols()}, memory_));
  LOOM_ASSIGN(at.random_v, persistent(at.random.shape, memory_));
  LOOM_ASSIGN(at.bias_v, persistent(at.bias.shape, memory_));
  const std::string path = network.cells()[at.below].at.str() + "/inverse/";
  state_.push_back({path + "weight", at.random});
  state_.push_back({path + "bias", at.bias});
  state_.push_back({path + "weight/v", at.random_v});
  state_.push_back({path + "bias/v", at.bias_v});
  return {};
}

Status check_rule(const RuleSpec& r) {
  if (r.has_beta() && !(r.beta > 0 && r.beta <= 1))
    return invalid(cat("beta is ", r.beta, ", must be above 0 and at most 1"));
  if (!(r.min_budget() >= 0 && r.min_budget() < 1))
    return invalid(cat("the gate is ", r.min_budget(), ", must be at least 0 and below 1"));
  return {};
}

Result<SignalPlan> make_plan(const Network& network, const TrainStepOptions& options,
                             std::vector<Buffer>& memory, std::vector<StateTensor>& state) {
  const bool plain = rule_def(options.rule.kind).end_to_end;
  if (plain && options.rule.has_budgets())
    return invalid("back-propagation has no gate; choose the rule chain");
  if (plain && !options.rule.stats) return SignalPlan();
  if (options.ticks != nullptr) return make_tick_plan(network, options, memory);
  return SignalPlanner(network, options, memory, state).make();
}

}  // namespace loom::core
