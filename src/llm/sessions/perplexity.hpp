// Perplexity of a text: exp of the mean negative log-likelihood of its tokens, in windows of equal
// length, each without earlier context. Window i reads ids [i w, i w + w) and predicts [i w + 1, i
// w + w]; a remainder shorter than a window is ignored.
#pragma once

#include <functional>
#include <span>

#include "llm/sessions/llm_session.hpp"

namespace loom::core {

struct PerplexityOptions {
  int64_t window = 512;
  int64_t limit = 0;  // maximum predictions, in whole windows; 0 means all
  // Called with predictions done and total; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress;
};

struct Perplexity {
  double perplexity = 0.0;
  double nats_per_token = 0.0;
  int64_t predictions = 0;
};

// The session must have room for one window. Errors: invalid_argument (fewer tokens than a window
// needs).
Result<Perplexity> measure_perplexity(LlmSession& session, std::span<const TokenId> ids,
                                      const PerplexityOptions& options);

// -log softmax(logits)[target]: exponentials in f32, sums in double, in one fixed order.
double negative_log_likelihood(std::span<const float> logits, TokenId target);

}  // namespace loom::core
