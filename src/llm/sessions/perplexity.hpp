// Perplexity of a text: exp of the mean negative log-likelihood of its tokens, in windows of equal
// length, each without earlier context. Window i reads ids [i w, i w + w) and predicts [i w + 1, i
// w + w]; a remainder shorter than a window is ignored.
#pragma once

#include <span>

#include "llm/sessions/llm_session.hpp"
#include "loom/generation.hpp"

namespace loom::core {

// The session must have room for one window. Errors: invalid_argument (fewer tokens than a window
// needs).
// `reference`: a session of the model that options.reference is, or null.
Result<Perplexity> measure_perplexity(LlmSession& session, std::span<const TokenId> ids,
                                      const PerplexityOptions& options,
                                      LlmSession* reference = nullptr);

// -log softmax(logits)[target]: exponentials in f32, sums in double, in one fixed order.
double negative_log_likelihood(std::span<const float> logits, TokenId target);

// The divergence of the softmax q of `logits` from p of `reference`, in nats: sum p ln(p / q).
double kl_divergence(std::span<const float> reference, std::span<const float> logits);

}  // namespace loom::core
