// Beam search: the continuations of a prompt that a model finds likeliest as wholes, where
// generate() takes token after token. The rules are those of transformers' num_beams.
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
  int64_t num_beams = 4;  // texts that are followed at a time; 1 to 64
  int64_t max_tokens = 256;
  // The score of a text of n tokens is the sum of their log-probabilities / n^length_penalty: above
  // 0 long texts win, below 0 short ones.
  double length_penalty = 1.0;
  // Ends as soon as num_beams texts have ended. Else when no text that goes on has a better score
  // than the worst of those, at its length so far.
  bool early_stopping = false;
  std::vector<TokenId> eos_ids{};  // tokens that end a text; empty: those of the model
  bool ignore_eos = false;
  ModelSessionOptions session{};  // of all texts
  // Called before each token with how many there are; false stops with Code::cancelled.
  std::function<bool(int64_t tokens)> progress{};
};

struct BeamText {
  std::vector<TokenId> token_ids;  // without the one that ended it, which counts for the score
  std::string text;                // empty without a tokenizer
  double score = 0;
  StopReason stop = StopReason::length;  // or eos, or context
};

// At most num_beams texts, best first. The same model, prompt and options give the same texts on
// every machine. On the CPU, also where the engine has a GPU. Errors: those of Model::session(),
// invalid_argument (num_beams, an empty prompt), out_of_range (a token outside the vocabulary, a
// prompt longer than the context), unsupported (models with recurrent layers), cancelled.
LOOM_API Result<std::vector<BeamText>> beam_search(const Model& model,
                                                   std::span<const TokenId> prompt,
                                                   const BeamOptions& options = {});

}  // namespace loom
