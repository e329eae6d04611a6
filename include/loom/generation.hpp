// Results of text generation: plain data shared by the engine and its callers. The options are in
// loom/generation_options.hpp. Sampling
// is a pure function of the logits, the options and the number of tokens sampled so far. It has the
// same bits on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/generation_options.hpp"

namespace loom {

// The seed of text number `choice` of several; the first uses `seed` itself.
LOOM_API uint64_t choice_seed(uint64_t seed, int64_t choice);

// New text, whole UTF-8 characters; false stops with `cancelled`.
using TextSink = std::function<bool(std::string_view text)>;

enum class StopReason : uint8_t {
  eos,          // the model ended the text
  stop_string,  // a stop string appeared
  length,       // max_tokens were generated
  context,      // the context of the session is full
  cancelled     // a callback returned false
};
LOOM_API std::string_view stop_reason_name(StopReason reason);

struct Generation {
  // The complete text that the sink received: what the tokens add to the prompt and to everything
  // that the session has read before.
  std::string text;
  // The sampled tokens, without the one that ended the text (eos). Tokens of a stop string are
  // included.
  std::vector<TokenId> token_ids;
  std::vector<float> logprobs;  // of token_ids, if requested
  StopReason stop = StopReason::length;
  int64_t prompt_tokens = 0;
  int64_t unknown_tokens = 0;    // those of token_ids without text in the tokenizer
  int64_t decode_steps = 0;      // tokens fed after the prompt whose logits were used
  int64_t forgotten_tokens = 0;  // by GenerateOptions::shift_context
  int64_t guessed = 0;           // draft tokens
  int64_t accepted = 0;          // draft tokens that were accepted
  int64_t passes = 0;            // forward passes after the prompt, with speculation
  int64_t guess_passes = 0;      // those of them that verified draft tokens
  double prefill_seconds = 0.0;  // reading of the prompt
  double decode_seconds = 0.0;   // everything after it
};

// Checks whether GenerateOptions::grammar or ::json_schema is valid, without a model. Errors: those
// of generation. Use it if they come from a file.
LOOM_API Status check_rules(const GenerateOptions& options);

// exp of the mean negative log-likelihood of the tokens of a text. Window i reads ids [iw, iw + w)
// and predicts [iw + 1, iw + w]; a remainder shorter than a window is ignored.
struct Perplexity {
  double perplexity = 0, nats_per_token = 0;
  int64_t predictions = 0;
  // Beside PerplexityOptions::reference; 0 and 1 without one.
  double kl_divergence = 0;  // mean of sum p ln(p / q) in nats, p of the reference
  double top_agreement = 1;  // share of predictions with the same most likely token
};

}  // namespace loom
