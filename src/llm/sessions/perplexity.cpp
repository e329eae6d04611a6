#include "llm/sessions/perplexity.hpp"

#include <algorithm>

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

Result<Perplexity> measure_perplexity(LlmSession& session, std::span<const TokenId> ids,
                                      const PerplexityOptions& options) {
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
  for (int64_t begin = 0; begin < total; begin += window) {
    session.rewind(0);
    const auto sink = [&](int64_t at, std::span<const float> logits) -> Status {
      sum += negative_log_likelihood(logits, ids[static_cast<size_t>(begin + at + 1)]);
      ++result.predictions;
      if (options.progress && !options.progress(result.predictions, total))
        return make_error(Code::cancelled, "stopped");
      return {};
    };
    LOOM_TRY(session.feed_all(ids.subspan(static_cast<size_t>(begin), static_cast<size_t>(window)),
                              sink));
  }
  result.nats_per_token = sum / static_cast<double>(result.predictions);
  // Beyond e^700 there is nothing left to compare.
  result.perplexity = dmath::exp(std::min(result.nats_per_token, 699.0));
  return result;
}

}  // namespace loom::core
