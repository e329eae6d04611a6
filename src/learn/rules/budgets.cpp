#include "learn/rules/budgets.hpp"

#include <cmath>

#include "learn/rules/rule.hpp"

namespace loom::core {
namespace {

constexpr float kSmall = 1e-30f;

class Budgets {
 public:
  Budgets(Trace& trace, const TrainStepOptions& options, StepTensors& t)
      : s_(trace), options_(options), t_(t), n_(static_cast<float>(t.network.y.rows())) {
    step_ = (rule_def(options.rule.kind).gradients ? 0.1f : 1.0f) * n_;
  }

  Status link(size_t block, const Tensor& output, const Tensor& signal, const Tensor& exact) {
    const Tensor h = flat(output), s = flat(signal);
    LOOM_ASSIGN(const Tensor difference, s_.binary(s, step_, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor target, s_.binary(h, difference, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor cosine, cosine_of(h, target));
    LOOM_ASSIGN(const Tensor half, s_.binary(cosine, 0.5f, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor budget, s_.binary(half, 0.5f, BinaryKind::add));
    LOOM_ASSIGN(const Tensor above, s_.binary(budget, options_.rule.min_budget(), BinaryKind::sub));
    LOOM_ASSIGN(const Tensor open, s_.unary(above, UnaryKind::step));
    if (options_.rule.has_budgets()) LOOM_TRY(weigh(block, budget, open));
    if (!options_.rule.stats) return {};
    const Tensor row = t_.plan->stats.slice_rows(static_cast<int64_t>(block), 1);
    LOOM_TRY(s_.ops().unary({budget, cell(row, kLinkBudget)}));
    LOOM_TRY(root_mean(difference, cell(row, kLinkGap)));
    LOOM_ASSIGN(const Tensor closed, s_.binary(open, -1.0f, BinaryKind::add));
    LOOM_TRY(s_.ops().unary({closed, cell(row, kLinkClosed), UnaryKind::neg}));
    LOOM_TRY(root_mean(s, cell(row, kLinkSize)));
    LOOM_ASSIGN(const Tensor agreed, cosine_of(s, flat(exact)));
    return s_.ops().unary({agreed, cell(row, kLinkCosine)});
  }

 private:
  static Tensor flat(const Tensor& t) { return as_matrix(t, t.rows(), t.cols()); }

  Result<Tensor> dot(const Tensor& a, const Tensor& b) {
    LOOM_ASSIGN(const Tensor products, s_.binary(a, b, BinaryKind::mul));
    const Tensor rows = s_.fresh(Shape{a.rows()}), all = s_.fresh(Shape{1, 1});
    LOOM_TRY(s_.ops().reduce({products, rows, ReduceKind::sum}));
    LOOM_TRY(s_.ops().reduce({as_matrix(rows, 1, a.rows()), all, ReduceKind::sum}));
    return all;
  }

  // Divided by one length after the other: the product of two short ones may be 0.
  Result<Tensor> cosine_of(const Tensor& a, const Tensor& b) {
    LOOM_ASSIGN(const Tensor size_a, s_.norm(a));
    LOOM_ASSIGN(const Tensor size_b, s_.norm(b));
    LOOM_ASSIGN(const Tensor safe_a, s_.binary(size_a, kSmall, BinaryKind::max));
    LOOM_ASSIGN(const Tensor safe_b, s_.binary(size_b, kSmall, BinaryKind::max));
    LOOM_ASSIGN(const Tensor unit_a, s_.binary(a, safe_a, BinaryKind::div));
    LOOM_ASSIGN(const Tensor unit_b, s_.binary(b, safe_b, BinaryKind::div));
    return dot(unit_a, unit_b);
  }

  Status root_mean(const Tensor& x, const Tensor& to) {
    LOOM_ASSIGN(const Tensor norm, s_.norm(x));
    const auto count = static_cast<float>(x.shape.count());
    LOOM_ASSIGN(const Tensor root, s_.binary(norm, 1.0f / std::sqrt(count), BinaryKind::mul));
    return s_.ops().unary({root, to});
  }

  Status weigh(size_t block, const Tensor& budget, const Tensor& open) {
    LOOM_ASSIGN(const Tensor half, s_.binary(budget, 0.5f, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor rate, s_.binary(half, 0.5f, BinaryKind::add));
    LOOM_ASSIGN(const Tensor factor, s_.binary(rate, open, BinaryKind::mul));
    const std::vector<size_t>& blocks = t_.plan->blocks;
    t_.factors.resize(blocks.size());
    for (size_t p = 0; p < blocks.size(); ++p) {
      if (blocks[p] == block) t_.factors[p] = factor;
    }
    return {};
  }

  TraceBuilder s_;
  const TrainStepOptions& options_;
  StepTensors& t_;
  float n_, step_;
};

}  // namespace

Status record_budgets(Trace& trace, const TrainStepOptions& options, StepTensors& t,
                      const LinkTensors& links) {
  if (!options.rule.has_budgets() && !options.rule.stats) return {};
  Budgets budgets(trace, options, t);
  for (size_t i = 0; i < links.outputs.size(); ++i) {
    if (links.signals[i].empty()) continue;
    const Tensor& exact =
        links.exact.empty() || links.exact[i].empty() ? links.signals[i] : links.exact[i];
    Tensor same = links.outputs[i];
    same = as_matrix(same, same.rows(), same.cols());
    const Tensor signal = as_matrix(links.signals[i], same.rows(), same.cols());
    LOOM_TRY(budgets.link(i, same, signal, as_matrix(exact, same.rows(), same.cols())));
  }
  return {};
}

}  // namespace loom::core
