// Beam search: finds the continuations of a prompt with the highest probability as a whole, while
// generate() chooses token by token. The rules are those of transformers' num_beams.
//
//   auto texts = loom::beam_search(*model, *model->tokenize("Once"), {.num_beams = 4});
//   use((*texts)[0].text);
#pragma once

#include <span>
#include <string>
#include <vector>

#include "loom/beam_options.hpp"
#include "loom/language_model.hpp"

namespace loom {

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
