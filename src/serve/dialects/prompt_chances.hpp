// Probabilities of prompt tokens, for `echo` with `logprobs` of /v1/completions.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "loom/language_model.hpp"

namespace loom::core {

// A token of a prompt, given those before it. The first token of a prompt has no probability.
struct PromptToken {
  std::optional<float> logprob;
  std::vector<TokenChoice> top;  // the likeliest tokens at its position, best first
};

// The probabilities of the tokens of each prompt, with the `most` likeliest ones for each. One
// session reads the prompts one by one. `go_on` is called between tokens; false ends it with
// Code::cancelled. Errors: those of Model::session() and ModelSession::feed_all().
Result<std::vector<std::vector<PromptToken>>> prompt_chances(
    const Model& model, const std::vector<std::vector<TokenId>>& prompts, int64_t most,
    const ModelSessionOptions& session, const std::function<bool()>& go_on);

}  // namespace loom::core
