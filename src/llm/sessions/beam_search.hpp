// Beam search: finds continuations of a prompt with a large sum of log-probabilities, normalized by
// length. It keeps a few beams at a time. The rules are those of transformers' generate() with
// num_beams (Wolf et al., 2020; GenerationMixin._beam_search), so that texts can be compared. Ties
// go to the better beam, then to the smaller id. Beams are sequences of a batch that share the
// pages of their common prefix.
#pragma once

#include <functional>

#include "llm/sessions/llm_batch.hpp"

namespace loom::core {

struct BeamSearch {
  int64_t beams = 4;            // kept at a time; 1 to 64
  int64_t max_tokens = 256;     // of a text
  double length_penalty = 1.0;  // a text of n tokens has the score sum / n^penalty
  bool early_stopping = false;  // end when `beams` texts have ended, though others may be better
  std::vector<TokenId> eos{};   // end a text; they count for its length and score
  std::function<bool(int64_t tokens)> progress{};  // false: stops with Code::cancelled
};

struct BeamFound {
  std::vector<TokenId> ids;  // without the token that ended it
  double score = 0;
  bool ended = false;  // by a token of `eos`; false: by max_tokens or the context
};

// Returns at most `beams` texts, best first. Log-probabilities are logit - max - log(sum of exp),
// with the sum in double in the order of the ids. Errors: those of LlmBatch::create() and feed();
// invalid_argument (beams out of range, an empty prompt); cancelled.
Result<std::vector<BeamFound>> beam_search(const LanguageModel& model, const Ops& ops,
                                           ThreadPool& pool, const LlmBatchOptions& memory,
                                           std::span<const TokenId> prompt,
                                           const BeamSearch& search);

}  // namespace loom::core
