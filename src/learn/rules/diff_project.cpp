// Difference targets t = h - s through normalized weights: s_m = beta e, and
// s_k-1,i = sqrt(O) sum_o s_k,o W_oi / sum_o |W_oi| if block k is one Dense with weight W [O, I].
// Other blocks: s_k through the block as a gradient, with slopes of activations 1, then scaled to
// the root mean square of s_k. Through ticks, the mean over the slots that read a slot.
#include <cmath>
#include <map>

#include "learn/rules/signal_builder.hpp"
#include "learn/rules/signal_planner.hpp"
#include "learn/rules/tick_builder.hpp"

namespace loom::core {
namespace {

Result<NormalizedWeight> normalized_by_root(TraceBuilder& s, const Tensor& weight) {
  return normalized(s, weight, std::sqrt(static_cast<float>(weight.shape[0])));
}

Status plan_cut(SignalPlanner& planner, size_t i) {
  planner.plan.cuts[i].weight = planner.dense_above(i);
  return {};
}

Result<Tensor> below(SignalBuilder& b, size_t i) {
  if (b.cuts[i].weight < 0) {
    LOOM_ASSIGN(const Tensor gradient, b.through_block(i, false));
    return scaled_as(b.s, gradient, b.above(i));
  }
  LOOM_ASSIGN(const NormalizedWeight w, normalized_by_root(b.s, b.weight_above(i)));
  return project(b.s, w, b.above(i));
}

class Ticks {
 public:
  explicit Ticks(TickSignals& to) : b_(to) {}

  Status record(const Tensor& dy) {
    LOOM_ASSIGN(const Tensor top, damped(b_.s, b_.options, dy));
    const auto out = static_cast<size_t>(b_.pass.output);
    for (size_t now = b_.made.size() - 1; now >= 1; --now) {
      for (size_t k = 0; k < b_.pass.slots.size(); ++k) {
        if (k == out) {
          b_.made[now][k] = b_.part(top, k, now);
        } else if (b_.pass.slots[k].fill >= 0 && now + 1 < b_.made.size()) {
          LOOM_TRY(mean_of_readers(k, now));
        }
      }
    }
    return {};
  }

 private:
  Status mean_of_readers(size_t k, size_t now) {
    Tensor sum;
    float count = 0;
    for (const int reader : b_.pass.slots[k].readers) {
      const auto j = static_cast<size_t>(reader);
      if (b_.made[now + 1][j].empty()) continue;
      LOOM_ASSIGN(const Tensor one, through(j, k, now));
      if (one.empty()) continue;
      ++count;
      if (sum.empty()) {
        sum = one;
      } else {
        LOOM_ASSIGN(sum, b_.s.binary(sum, one, BinaryKind::add));
      }
    }
    if (count > 1) {
      LOOM_ASSIGN(sum, b_.s.binary(sum, 1.0f / count, BinaryKind::mul));
    }
    if (!sum.empty()) b_.made[now][k] = b_.shaped(sum, k);
    return {};
  }

  // The signal of slot j in the next tick, seen from slot k: a matrix.
  Result<Tensor> through(size_t j, size_t k, size_t now) {
    const Tensor& above = b_.made[now + 1][j];
    const TickSlot& slot = b_.pass.slots[j];
    if (slot.identity) return as_matrix(above, above.rows(), above.cols());
    if (slot.dense < 0) return gradient(b_.pass.values[now][k], b_.pass.values[now + 1][j], above);
    NormalizedWeight& w = weights_[j];
    if (w.plain.empty()) {
      const Tensor& weight = b_.network.params()[static_cast<size_t>(slot.dense)].tensor;
      LOOM_ASSIGN(w, normalized_by_root(b_.s, weight));
    }
    return project(b_.s, w, above);
  }

  Result<Tensor> gradient(const Tensor& below, const Tensor& upper, const Tensor& above) {
    Differentiator probe(b_.trace);
    probe.through_activations();
    probe.want(below);
    probe.seed(upper, above);
    LOOM_TRY(probe.run());
    const Tensor found = probe.gradient(below);
    if (found.empty()) return Tensor{};
    LOOM_ASSIGN(const Tensor scaled, scaled_as(b_.s, found, above));
    return as_matrix(scaled, below.rows(), below.cols());
  }

  TickSignals& b_;
  std::map<size_t, NormalizedWeight> weights_;  // by slot
};

Status ticks(TickSignals& b, const Tensor& dy) {
  return Ticks(b).record(dy);
}

constexpr RuleOption kOptions[] = {kBetaOption};

}  // namespace

extern const RuleDef kDiffProjectRule;
const RuleDef kDiffProjectRule = {
    .damped = true, .options = kOptions, .plan_cut = plan_cut, .below = below, .ticks = ticks};

}  // namespace loom::core
