#include "llm/sessions/perplexity.hpp"

#include <algorithm>
#include <vector>

#include "base/numbers/dmath.hpp"
#include "base/text.hpp"
#include "ops/fmath.hpp"

namespace loom::core {

double negative_log_likelihood(std::span<const float> logits, TokenId target) {
  constexpr size_t kLanes = 8;
  float best = logits[0];
  for (const float logit : logits) best = std::max(best, logit);
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j)
      lanes[j] += static_cast<double>(fmath::exp<float>(logits[i + j] - best));
  }
  for (; i < logits.size(); ++i)
    lanes[i % kLanes] += static_cast<double>(fmath::exp<float>(logits[i] - best));
  double sum = 0.0;
  for (const double lane : lanes) sum += lane;
  const auto own = static_cast<double>(logits[static_cast<size_t>(target)]);
  return dmath::log(sum) - (own - static_cast<double>(best));
}

double kl_divergence(std::span<const float> reference, std::span<const float> logits) {
  const double own = negative_log_likelihood(logits, 0);
  const double other = negative_log_likelihood(reference, 0);
  const auto first = static_cast<double>(reference[0]), first_own = static_cast<double>(logits[0]);
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    const double log_p = static_cast<double>(reference[i]) - first - other;
    const double log_q = static_cast<double>(logits[i]) - first_own - own;
    const auto p = static_cast<double>(fmath::exp<float>(static_cast<float>(log_p)));
    sum += p * (log_p - log_q);
  }
  return sum > 0 ? sum : 0;
}

namespace {

size_t top_of(std::span<const float> logits) {
  return static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
}

// Compares the predictions of a window with those of another model, position by position.
class Comparison {
 public:
  explicit Comparison(LlmSession* reference) : reference_(reference) {}
  Status read(std::span<const TokenId> window) {
    if (reference_ == nullptr) return {};
    logits_.clear();
    reference_->rewind(0);
    return reference_->feed_all(window, [&](int64_t, std::span<const float> logits) -> Status {
      logits_.insert(logits_.end(), logits.begin(), logits.end());
      return {};
    });
  }
  void add(int64_t at, std::span<const float> logits) {
    if (reference_ == nullptr) return;
    const auto first = static_cast<size_t>(at) * logits.size();
    const std::span<const float> other = std::span(logits_).subspan(first, logits.size());
    kl_ += core::kl_divergence(other, logits);
    same_ += top_of(other) == top_of(logits) ? 1 : 0;
  }
  void report(Perplexity& out) const {
    if (reference_ == nullptr) return;
    out.kl_divergence = kl_ / static_cast<double>(out.predictions);
    out.top_agreement = static_cast<double>(same_) / static_cast<double>(out.predictions);
  }

 private:
  LlmSession* reference_;
  std::vector<float> logits_;  // of a window
  double kl_ = 0;
  int64_t same_ = 0;
};

}  // namespace

Result<Perplexity> measure_perplexity(LlmSession& session, std::span<const TokenId> ids,
                                      const PerplexityOptions& options, LlmSession* reference) {
  const int64_t window = options.window;
  if (window < 1) return invalid(cat("a window needs at least one prediction; got ", window));
  int64_t total = static_cast<int64_t>(ids.size()) - 1;
  if (options.limit > 0) total = std::min(total, options.limit);
  total -= total % window;
  if (total <= 0) {
    return invalid(cat("a window of ", window, " predictions needs ", window + 1,
                       " tokens; there are ", ids.size(),
                       options.limit > 0 ? cat(", and a limit of ", options.limit) : "",
                       "; choose a smaller window"));
  }
  Perplexity result;
  double sum = 0.0;
  Comparison comparison(reference);
  for (int64_t begin = 0; begin < total; begin += window) {
    const auto part = ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(window));
    LOOM_TRY(comparison.read(part));
    session.rewind(0);
    const auto sink = [&](int64_t at, std::span<const float> logits) -> Status {
      sum += negative_log_likelihood(logits, ids[static_cast<size_t>(begin + at + 1)]);
      comparison.add(at, logits);
      ++result.predictions;
      if (options.progress && !options.progress(result.predictions, total))
        return make_error(Code::cancelled, "stopped");
      return {};
    };
    LOOM_TRY(session.feed_all(part, sink));
  }
  comparison.report(result);
  result.nats_per_token = sum / static_cast<double>(result.predictions);
  // Beyond e^700 there is nothing left to compare.
  result.perplexity = dmath::exp(std::min(result.nats_per_token, 699.0));
  return result;
}

}  // namespace loom::core
