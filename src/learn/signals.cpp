#include "learn/signals.hpp"

#include <cmath>

#include "base/rng.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

// Random matrices have streams of their own, as noise has: not those of layers and of rounding.
constexpr uint64_t kSignalStream = uint64_t{1} << 51;
constexpr int64_t kMostNumbers = int64_t{1} << 26;  // of one random matrix

std::string named(const Network& network, size_t cell) {
  const GridNode& c = network.cells()[cell];
  return cat("cell ", c.at.str(), " (", c.node.config.def->name, ")");
}

Error refused(RuleKind rule, const Network& network, size_t cell, std::string_view why) {
  return invalid(cat("the rule ", rule_name(rule), ": ", named(network, cell), " ", why));
}

bool has_params(const Node& node) {
  if (!node.params.empty()) return true;
  for (const Node& child : node.children) {
    if (has_params(child)) return true;
  }
  return false;
}

// How rows of the numbers `from` become rows of the numbers `to`: row by row where there are
// equally many, else sample by sample.
struct Rows {
  int64_t count = 0, from = 0, to = 0;
};
Result<Rows> rows_between(const Shape& from, const Shape& to, int64_t batch, bool by_sample) {
  const int64_t rows = from.rows();
  if (!by_sample && rows == to.rows()) return Rows{rows, from.last(), to.last()};
  if ((by_sample || rows == batch) && from.count() % batch == 0 && to.count() % batch == 0)
    return Rows{batch, from.count() / batch, to.count() / batch};
  return invalid("has neither a row per row of the prediction nor one prediction per sample");
}

// Uniform with variance 1 / rows.
Result<Tensor> random_matrix(int64_t rows, int64_t cols, uint64_t seed, size_t cell,
                             std::vector<Buffer>& memory) {
  LOOM_ASSIGN(Tensor b, persistent(Shape{rows, cols}, memory));
  const Rng rng(seed, kSignalStream + cell);
  const float most = std::sqrt(3.0f / static_cast<float>(rows));
  for (int64_t i = 0; i < rows * cols; ++i)
    b.f32()[i] = (2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f) * most;
  return b;
}

// A Dense, which reads what the cell below gave, whatever looks at it in between.
Status check_dense(const Network& network, const SignalCut& cut, RuleKind rule) {
  const Node& node = network.cells()[cut.above].node;
  if (node.config.def->name != "Dense" || node.config.disabled)
    return refused(rule, network, cut.above, "is no Dense; choose dfa, drtp or fixed-dtp");
  return {};
}

Result<Rows> rows_of(const Network& network, const SignalCut& cut, const Shape& upper,
                     RuleKind rule) {
  const Result<Rows> rows = rows_between(upper, network.cells()[cut.below].out, network.input()[0],
                                         rule == RuleKind::fixed_dtp);
  if (!rows.ok()) return refused(rule, network, cut.below, rows.error().message);
  if (rows->from > kMostNumbers / rows->to) {
    return refused(rule, network, cut.below,
                   cat("would need a random matrix of ", rows->from, " x ", rows->to,
                       " numbers; at most ", kMostNumbers, " are made"));
  }
  return rows;
}

// The output of the block above a cut: at the next cut, or the prediction.
Shape upper_shape(const Network& network, const std::vector<SignalCut>& cuts, size_t i) {
  return i + 1 < cuts.size() ? network.cells()[cuts[i + 1].below].out : network.output();
}

class Signals {
 public:
  Signals(Trace& trace, const TrainStepOptions& options, const StepTensors& t)
      : s_(trace), options_(options), t_(t), batch_(t.network.x.shape[0]) {}

  // e, or what takes its place at the prediction.
  Result<Tensor> at_top(const Tensor& dy) {
    if (options_.rule.kind == RuleKind::drtp) return minus_targets(dy);
    return options_.rule.has_beta() ? s_.binary(dy, options_.rule.beta, BinaryKind::mul)
                                    : Result<Tensor>(dy);
  }

  // The signal at a cut, of the numbers `from` per row at the prediction.
  Result<Tensor> direct(const SignalCut& cut, const Tensor& from) {
    const Tensor& h = output(cut);
    LOOM_ASSIGN(const Rows rows, rows_between(t_.network.y.shape, h.shape, batch_, false));
    return product(as_matrix(from, rows.count, rows.from), cut.random, rows.to);
  }

  // s_k [rows, O] through W.
  Result<Tensor> projected(const SignalCut& cut, const Tensor& above) {
    const int64_t out = cut.weight.shape[0], in = cut.weight.shape[1];
    const Tensor plain = s_.fresh(Shape{out, in});
    LOOM_TRY(s_.ops().convert({cut.weight, plain}));
    LOOM_ASSIGN(const Tensor sizes, s_.unary(plain, UnaryKind::abs));
    const Tensor sums = s_.fresh(Shape{in});
    LOOM_TRY(s_.ops().reduce_cols({sizes, sums}));
    LOOM_ASSIGN(const Tensor factors, factors_of(as_matrix(sums, 1, in), out));
    LOOM_ASSIGN(const Tensor below,
                product(as_matrix(above, above.shape.count() / out, out), plain, in));
    return s_.binary(below, factors, BinaryKind::mul);
  }

  // s_k through tanh(v B).
  Result<Tensor> through_inverse(const SignalCut& cut, const Tensor& upper, const Tensor& above) {
    const auto n = static_cast<float>(t_.network.y.rows());
    const int64_t from = upper.shape.count() / batch_;
    const Tensor h = as_matrix(upper, batch_, from), s = as_matrix(above, batch_, from);
    LOOM_ASSIGN(const Tensor whole, s_.binary(s, n, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor target, s_.binary(h, whole, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor was, inverse(h, cut.random));
    LOOM_ASSIGN(const Tensor wanted, inverse(target, cut.random));
    LOOM_ASSIGN(const Tensor difference, s_.binary(was, wanted, BinaryKind::sub));
    return s_.binary(difference, 1.0f / n, BinaryKind::mul);
  }

  const Tensor& output(const SignalCut& cut) const { return t_.network.outputs[cut.below]; }

 private:
  Result<Tensor> product(const Tensor& a, const Tensor& b, int64_t cols) {
    const Tensor y = s_.fresh(Shape{a.rows(), cols});
    LOOM_TRY(s_.ops().gemm({a, b, y}));
    return y;
  }

  Result<Tensor> inverse(const Tensor& v, const Tensor& random) {
    LOOM_ASSIGN(const Tensor z, product(v, random, random.shape[1]));
    return s_.unary(z, UnaryKind::tanh);
  }

  // sqrt(O) / sum, or 0 where the sum is 0.01 or less.
  Result<Tensor> factors_of(const Tensor& sums, int64_t out) {
    constexpr float kLeast = 0.01f;
    LOOM_ASSIGN(const Tensor beyond, s_.binary(sums, kLeast, BinaryKind::sub));
    LOOM_ASSIGN(const Tensor turned, s_.unary(beyond, UnaryKind::neg));
    LOOM_ASSIGN(const Tensor small, s_.unary(turned, UnaryKind::step));
    LOOM_ASSIGN(const Tensor minus, s_.unary(small, UnaryKind::neg));
    LOOM_ASSIGN(const Tensor large, s_.binary(minus, 1.0f, BinaryKind::add));
    LOOM_ASSIGN(const Tensor safe, s_.binary(sums, kLeast, BinaryKind::max));
    LOOM_ASSIGN(const Tensor inverses, s_.unary(safe, UnaryKind::reciprocal));
    LOOM_ASSIGN(const Tensor kept, s_.binary(inverses, large, BinaryKind::mul));
    return s_.binary(kept, std::sqrt(static_cast<float>(out)), BinaryKind::mul);
  }

  // -w t. Of classes t is what the gradient of softmax and cross-entropy, w (p - t), leaves when w
  // p is taken away: no label is looked at, and those that count nothing have weight 0.
  Result<Tensor> minus_targets(const Tensor& dy) {
    Tensor weight = as_matrix(t_.weight, t_.weight.shape.count(), 1);
    const Tensor all = s_.fresh(dy.shape);
    int64_t first = 0;
    for (const Tensor& target : t_.targets) {
      const bool classes = options_.loss.kind == LossKind::softmax_ce;
      const int64_t width = t_.targets.size() > 1 ? options_.loss.heads[head_++] : dy.cols();
      const Tensor part = slice_cols(all, first, width);
      if (classes) {
        const Tensor scores = as_matrix(t_.network.y, dy.rows(), dy.cols());
        const Tensor p = s_.fresh(Shape{dy.rows(), width});
        LOOM_TRY(s_.ops().softmax({slice_cols(scores, first, width), p}));
        LOOM_ASSIGN(const Tensor weighted, s_.binary(p, weight, BinaryKind::mul));
        LOOM_TRY(s_.ops().binary({slice_cols(dy, first, width), weighted, part, BinaryKind::sub}));
      } else {
        LOOM_ASSIGN(const Tensor weighted, s_.binary(target, weight, BinaryKind::mul));
        LOOM_TRY(s_.ops().unary({weighted, part, UnaryKind::neg}));
      }
      first += width;
    }
    return all;
  }

  Scribe s_;
  const TrainStepOptions& options_;
  const StepTensors& t_;
  int64_t batch_;
  size_t head_ = 0;
};

// A signal takes the place of the gradient of a whole tensor.
Status check_whole(const Trace& trace, const SignalCut& cut, const Tensor& h, RuleKind rule) {
  const int64_t at = trace.find(h.data);
  const bool whole = at >= 0 && trace.tensor(at).data == h.data &&
                     trace.tensor(at).shape.count() == h.shape.count();
  if (whole) return {};
  return invalid(cat("the rule ", rule_name(rule), ": ", cut.name,
                     " hands on a part of what it computes; put it and the layer that follows into "
                     "one Sequential"));
}

}  // namespace

Result<std::vector<SignalCut>> make_cuts(const Network& network, const TrainStepOptions& options,
                                         std::vector<Buffer>& memory) {
  const RuleKind rule = options.rule.kind;
  std::vector<SignalCut> cuts;
  if (rule == RuleKind::back_propagation) return cuts;
  if (options.rule.has_beta() && !(options.rule.beta > 0 && options.rule.beta <= 1))
    return invalid(cat("beta is ", options.rule.beta, ", must be above 0 and at most 1"));
  if (options.forward) return invalid(cat("the rule ", rule_name(rule), " is not for meshes"));
  if (options.optimizer.lbfgs())
    return invalid("L-BFGS follows the gradient of the loss; choose another optimizer or rule");
  if (rule == RuleKind::drtp && options.loss.sequence())
    return invalid("drtp projects targets, and those of ctc have no place; choose dfa");
  if (!network.more_inputs().empty() || !network.more_outputs().empty())
    return invalid(cat("the rule ", rule_name(rule), " is for networks of one input and output"));
  bool any = false;
  for (size_t i = 0; i < network.cells().size(); ++i) {
    if (network.cells()[i].link >= 0)
      return refused(rule, network, i, "has a link; cells must follow each other");
    if (!has_params(network.cells()[i].node)) continue;
    if (any) cuts.push_back({i - 1, i, named(network, i - 1), {}, {}});
    any = true;
  }
  const auto last = static_cast<size_t>(network.cells().size() - 1);
  if (rule == RuleKind::diff_project && !cuts.empty() && cuts.back().above != last)
    return refused(rule, network, last, "stands behind the last Dense; choose dfa or drtp");
  for (size_t i = 0; i < cuts.size(); ++i) {
    SignalCut& cut = cuts[i];
    if (rule == RuleKind::diff_project) {
      LOOM_TRY(check_dense(network, cut, rule));
      const Node& node = network.cells()[cut.above].node;
      cut.weight = network.params()[static_cast<size_t>(node.params[0])].tensor;
      // What stands between two Dense must hand its input on as it is.
      if (i + 1 < cuts.size() && cuts[i + 1].below != cut.above)
        return refused(rule, network, cuts[i + 1].below, "stands between two Dense");
      continue;
    }
    const bool chained = rule == RuleKind::fixed_dtp;
    const Shape upper = chained ? upper_shape(network, cuts, i) : network.output();
    LOOM_ASSIGN(const Rows rows, rows_of(network, cut, upper, rule));
    LOOM_ASSIGN(cut.random, random_matrix(rows.from, rows.to, options.seed, cut.below, memory));
  }
  return cuts;
}

Status record_signals(Trace& trace, const TrainStepOptions& options, const StepTensors& t,
                      const Tensor& dy, Differentiator& d) {
  const RuleKind rule = options.rule.kind;
  if (rule == RuleKind::back_propagation || t.cuts == nullptr) return {};
  if (rule == RuleKind::drtp && t.targets.empty())
    return invalid("drtp projects targets, which a loss of the caller's own does not give");
  Signals signals(trace, options, t);
  LOOM_ASSIGN(const Tensor top, signals.at_top(dy));
  const bool chained = rule == RuleKind::diff_project || rule == RuleKind::fixed_dtp;
  if (chained) d.replace(t.network.y, top);
  Tensor upper = t.network.y, above = top;
  for (size_t i = t.cuts->size(); i-- > 0;) {
    const SignalCut& cut = (*t.cuts)[i];
    Result<Tensor> signal = rule == RuleKind::diff_project ? signals.projected(cut, above)
                            : rule == RuleKind::fixed_dtp
                                ? signals.through_inverse(cut, upper, above)
                                : signals.direct(cut, top);
    if (!signal.ok()) return signal.error();
    upper = signals.output(cut);
    LOOM_TRY(check_whole(trace, cut, upper, rule));
    above = *signal;
    above.shape = upper.shape;
    above.row_stride = upper.shape.last();
    d.replace(upper, above);
  }
  return {};
}

}  // namespace loom::core
