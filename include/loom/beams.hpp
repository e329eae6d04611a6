// Beam search: finds the continuations of a prompt with the highest probability as a whole, while
// generate() chooses token by token. The rules are those of transformers' num_beams.
//
//   auto texts = loom::beam_search(*model, *model->tokenize("Once"), {.num_beams = 4});
//   use((*texts)[0].text);
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "loom/language_model.hpp"

namespace loom {

struct BeamOptions {
  int64_t num_beams = 4;  // number of beams, 1 to 64
  int64_t max_tokens = 256;
  // The score of a text of n tokens is the sum of its log-probabilities / n^length_penalty. Above 0
  // favours long texts, below 0 short ones.
  double length_penalty = 1.0;
  // true ends as soon as num_beams texts have ended. false ends when no running text has a better
  // score, at its length so far, than the worst of those.
  bool early_stopping = false;
  std::vector<TokenId> eos_ids{};  // tokens that end a text; empty means those of the model
  bool ignore_eos = false;
  ModelSessionOptions session{};  // applies to all texts
  // Called before each token with the number of tokens so far; false stops with Code::cancelled.
  std::function<bool(int64_t tokens)> progress{};
};

struct BeamText {
  std::vector<TokenId> token_ids;  // without the end token, which counts for the score
  std::string text;                // empty without a tokenizer
  double score = 0;
  StopReason stop = StopReason::length;  // or eos, or context
};

// Returns at most num_beams texts, best first. The same model, prompt and options give the same
// texts on every machine. It runs on the CPU even if the engine has a GPU. Errors: those of
// Model::session(); invalid_argument (num_beams, an empty prompt); out_of_range (a token outside
// the vocabulary, a prompt longer than the context); unsupported (models with recurrent layers);
// cancelled.
LOOM_API Result<std::vector<BeamText>> beam_search(const Model& model,
                                                   std::span<const TokenId> prompt,
                                                   const BeamOptions& options = {});

}  // namespace loom
