// What learning rules keep beside a network: where it is cut, and matrices.
#include <cmath>

#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "learn/rules/budgets.hpp"
#include "learn/rules/signals.hpp"
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

constexpr int64_t kMaxNumbers = int64_t{1} << 26;  // of one matrix

std::string named(const Network& network, size_t cell) {
  const GridNode& c = network.cells()[cell];
  return cat("cell ", c.at.str(), " (", c.node.config.def->name, ")");
}

Error refused(Rule rule, const Network& network, size_t cell, std::string_view why) {
  return invalid(cat("the rule ", rule_name(rule), ": ", named(network, cell), " ", why));
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

class Planner {
 public:
  Planner(const Network& network, const TrainStepOptions& options, std::vector<Buffer>& memory,
          std::vector<StateTensor>& state)
      : network_(network),
        options_(options),
        rule_(options.rule.kind),
        memory_(memory),
        state_(state) {}

  Result<SignalPlan> make() {
    LOOM_TRY(check());
    LOOM_TRY(cut());
    if (rule_ == Rule::forward_forward) LOOM_TRY(add_labels());
    for (size_t i = 0; i < plan_.cuts.size(); ++i) LOOM_TRY(fill(i));
    if (options_.rule.stats) {
      const auto blocks = static_cast<int64_t>(plan_.cuts.size() + 1);
      LOOM_ASSIGN(plan_.stats, persistent(Shape{blocks, kLinkNumbers}, memory_));
    }
    return std::move(plan_);
  }

 private:
  Status check() const {
    const RuleSpec& r = options_.rule;
    const std::string the_rule = cat("the rule ", rule_name(rule_));
    if (r.has_beta() && !(r.beta > 0 && r.beta <= 1))
      return invalid(cat("beta is ", r.beta, ", must be above 0 and at most 1"));
    if (!(r.min_budget() >= 0 && r.min_budget() < 1))
      return invalid(cat("the gate is ", r.min_budget(), ", must be at least 0 and below 1"));
    const bool needs_targets = rule_ == Rule::drtp || rule_ == Rule::hebb;
    if (needs_targets && options_.loss.sequence())
      return invalid(cat(rule_name(rule_),
                         " projects targets, and those of ctc have no place; "
                         "choose dfa"));
    if (!network_.extra_inputs().empty() || !network_.more_outputs().empty())
      return invalid(cat(the_rule, " is for networks of one input and output"));
    if (r.has_budgets() && options_.gathers()) {
      const bool own = optimizer_def(options_.optimizer.kind).gathers;
      return invalid(cat(
          "budgets weigh the gradients of one batch as they come; set accumulate to 1",
          own ? cat(" and take another optimizer than ", optimizer_name(options_.optimizer.kind))
              : "",
          ", or set the gate to 0"));
    }
    if ((r.has_budgets() || r.stats) && rule_ == Rule::forward_forward)
      return invalid("forward-forward has no targets, so no budgets; leave gate and stats out");
    return {};
  }

  Status cut() {
    plan_.blocks.assign(network_.params().size(), 0);
    bool any = false;
    for (size_t i = 0; i < network_.cells().size(); ++i) {
      if (network_.cells()[i].link >= 0)
        return refused(rule_, network_, i, "has a link; cells must follow each other");
      const Node& node = network_.cells()[i].node;
      if (has_params(node)) {
        if (any) {
          SignalCut& made = plan_.cuts.emplace_back();
          made.below = i - 1;
          made.above = i;
          made.name = named(network_, i - 1);
        }
        any = true;
      }
      note_block(node, plan_.cuts.size(), plan_.blocks);
    }
    return {};
  }

  // The weight of the block above cut i, where that is one Dense and nothing else.
  int dense_above(size_t i) const {
    const SignalCut& at = plan_.cuts[i];
    const size_t last =
        i + 1 < plan_.cuts.size() ? plan_.cuts[i + 1].below : network_.cells().size() - 1;
    const Node& node = network_.cells()[at.above].node;
    const bool dense = node.config.def->name == "Dense" && !node.config.disabled;
    return dense && last == at.above ? node.params[0] : -1;
  }

  // The output of the block above a cut: at the next cut, or the prediction.
  Shape upper_shape(size_t i) const {
    return i + 1 < plan_.cuts.size() ? network_.cells()[plan_.cuts[i + 1].below].out
                                     : predictions_of(network_);
  }

  Status fill(size_t i) {
    SignalCut& at = plan_.cuts[i];
    switch (rule_) {
      case Rule::diff_project: at.weight = dense_above(i); return {};
      case Rule::hebb:
        at.weight = dense_above(i);
        if (at.weight >= 0) return {};
        return refused(rule_, network_, at.above,
                       "is no Dense that stands alone; hebb is a measure for those, choose "
                       "diff-project");
      case Rule::dfa:
      case Rule::drtp: return fill_random(at, predictions_of(network_), false);
      case Rule::fixed_dtp: return fill_random(at, upper_shape(i), true);
      case Rule::dtp: return i + 1 < plan_.cuts.size() ? fill_inverse(at, i) : Status{};
      default: return {};
    }
  }

  Result<RowPair> rows_of(const SignalCut& at, const Shape& upper, bool by_sample) const {
    Result<RowPair> rows =
        rows_between(upper, network_.cells()[at.below].out, network_.input()[0], by_sample);
    if (!rows.ok()) return refused(rule_, network_, at.below, rows.error().message);
    if (rows->from > kMaxNumbers / rows->to) {
      return refused(rule_, network_, at.below,
                     cat("would need a matrix of ", rows->from, " x ", rows->to,
                         " numbers; at most ", kMaxNumbers, " are made"));
    }
    return rows;
  }

  Status fill_random(SignalCut& at, const Shape& upper, bool by_sample) {
    LOOM_ASSIGN(const RowPair rows, rows_of(at, upper, by_sample));
    LOOM_ASSIGN(at.random,
                random_matrix(Shape{rows.from, rows.to}, options_.seed, at.below, memory_));
    return {};
  }

  Status fill_inverse(SignalCut& at, size_t i) {
    LOOM_TRY(fill_random(at, upper_shape(i), true));
    LOOM_ASSIGN(at.bias, persistent(Shape{at.random.cols()}, memory_));
    LOOM_ASSIGN(at.random_v, persistent(at.random.shape, memory_));
    LOOM_ASSIGN(at.bias_v, persistent(at.bias.shape, memory_));
    const std::string path = network_.cells()[at.below].at.str() + "/inverse/";
    state_.push_back({path + "weight", at.random});
    state_.push_back({path + "bias", at.bias});
    state_.push_back({path + "weight/v", at.random_v});
    state_.push_back({path + "bias/v", at.bias_v});
    return {};
  }

  Status add_labels() {
    const Shape& x = network_.input();
    if (!options_.loss.has_classes() || !options_.class_ids || options_.loss.heads.size() > 1)
      return invalid("forward-forward tells right labels from wrong: it is for labels, one head");
    if (takes_ids(network_.cells()[0].node.config)) {
      return refused(rule_, network_, 0,
                     "takes ids, and forward-forward adds a pattern to numbers; choose dfa");
    }
    if (predictions_of(network_).rows() != x[0])
      return invalid("forward-forward needs one prediction per sample");
    if (plan_.cuts.empty())
      return invalid("forward-forward needs a layer with parameters in front of the last");
    const int64_t classes = predictions_of(network_).last(), numbers = x.count() / x[0];
    if (classes < 2) return invalid("forward-forward needs at least two classes");
    if (classes > kMaxNumbers / numbers)
      return invalid(cat("the patterns of ", classes, " labels are too large"));
    LOOM_ASSIGN(plan_.labels, random_matrix(Shape{classes, numbers}, options_.seed,
                                            network_.cells().size(), memory_));
    const float scale = options_.rule.label_scale * std::sqrt(static_cast<float>(classes));
    for (int64_t i = 0; i < classes * numbers; ++i) plan_.labels.f32()[i] *= scale;
    return {};
  }

  const Network& network_;
  const TrainStepOptions& options_;
  Rule rule_;
  std::vector<Buffer>& memory_;
  std::vector<StateTensor>& state_;
  SignalPlan plan_;
};

}  // namespace

Result<SignalPlan> make_plan(const Network& network, const TrainStepOptions& options,
                             std::vector<Buffer>& memory, std::vector<StateTensor>& state) {
  const bool plain = options.rule.kind == Rule::back_propagation;
  if (plain && options.rule.has_budgets())
    return invalid("back-propagation has no gate; choose the rule chain");
  if (plain && !options.rule.stats) return SignalPlan();
  if (options.ticks != nullptr) return make_tick_plan(network, options, memory);
  return Planner(network, options, memory, state).make();
}

}  // namespace loom::core
