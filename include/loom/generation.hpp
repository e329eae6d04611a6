// Options and results of text generation: plain data shared by the engine and its callers.
// Sampling is a pure function of the logits, the options and the number of tokens drawn so far, and
// has the same bits on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

using TokenId = int32_t;

struct CompiledRules;
class LookupText;
class ModelSession;

struct TokenBias {
  TokenId id = 0;
  float bias = 0;  // added to the logit
};

// DRY: a token that would go on with a repetition of the text so far loses multiplier *
// base^(n - allowed_length) of its logit, where n >= allowed_length tokens before it are repeated
// already (p-e-w, 2024, text-generation-webui #5677).
struct DryOptions {
  float multiplier = 0.0f;  // 0: off
  float base = 1.75f;
  int64_t allowed_length = 2;
  int64_t window = 0;  // tokens to look back, prompt included; 0: all
  // A repetition does not reach over a token whose text holds one of these; empty: a line end, a
  // colon, a quote and an asterisk.
  std::vector<std::string> breakers{};
};

// How the next token is chosen from the logits. In this order: biases; penalties for repetition,
// frequency and presence; DRY; then tokens that are banned, would complete an n-gram or leave the
// grammar are taken out; the first largest logit if temperature is 0; else with mirostat,
// temperature and mirostat; else top-n-sigma, temperature, top-k, typical, top-p, min-p, XTC, and a
// draw. docs/sampling.md has the formulas and where they come from.
struct SamplerOptions {
  float temperature = 0.0f;  // 0: greedy; else logits are divided by it
  int64_t top_k = 0;         // keep the k most likely tokens; 0: all
  float top_p = 1.0f;        // keep the fewest that hold this share of the probability; (0, 1]
  float min_p = 0.0f;        // keep those with at least this share of the best one's; [0, 1]
  // Logits of tokens seen in the window: divided by the penalty if positive, else multiplied
  // (Keskar et al., 2019).
  float repetition_penalty = 1.0f;
  int64_t repetition_window = 64;  // tokens to look back, prompt included; 0: all
  uint64_t seed = 0;

  // Logits of tokens seen in the same window lose the first for every time, the second once
  // (OpenAI).
  float frequency_penalty = 0.0f, presence_penalty = 0.0f;
  int64_t no_repeat_ngram = 0;  // no run of so many tokens comes twice; 0: off
  DryOptions dry{};
  float typical_p = 1.0f;    // keep the share whose surprise is nearest to the entropy; (0, 1]
  float top_n_sigma = 0.0f;  // keep logits within n deviations of the largest; 0: off
  // With this probability, of all tokens that have at least the threshold (of the probability)
  // only the least likely one is kept.
  float xtc_probability = 0.0f, xtc_threshold = 0.1f;
  // Temperature from temperature - range to + range, as (entropy / its maximum)^exponent says.
  float dynamic_range = 0.0f, dynamic_exponent = 1.0f;
  // 1, 2: keep the surprise of each token near tau bits (Basu et al., 2021); 0: off.
  int64_t mirostat = 0;
  float mirostat_tau = 5.0f, mirostat_eta = 0.1f;
  std::vector<TokenBias> logit_bias{};
  std::vector<TokenId> banned_tokens{};
  // Texts that the tokens drawn never spell: a token that would complete one is taken out.
  std::vector<std::string> banned_strings{};
};

// The seed of text number `choice` of several: that of the first is `seed` itself.
LOOM_API uint64_t choice_seed(uint64_t seed, int64_t choice);

struct TokenChoice {
  TokenId id = 0;
  float logprob = 0;  // natural logarithm of its probability
};

// A token that was drawn. Probabilities are those of the model: softmax of the logits, before
// temperature, penalties and cuts.
struct Token {
  TokenId id = 0;
  std::string_view text;             // what it adds, whole characters; good during the call
  float logprob = 0;                 // with GenerateOptions::logprobs
  std::span<const TokenChoice> top;  // the likeliest tokens there, best first
};

struct GenerateOptions {
  int64_t max_tokens = 256;
  SamplerOptions sampler{};
  // Generation ends where one of these appears; it is not part of the text. Valid UTF-8, not empty.
  std::vector<std::string> stop{};
  // Tokens that end the text; empty: those of the model.
  std::vector<TokenId> eos_ids{};
  bool ignore_eos = false;
  bool special_text =
      false;                 // tokens that are marks of a chat are text too: ReplyParser reads them
  bool logprobs = false;     // fills Token::logprob and Generation::logprobs
  int64_t top_logprobs = 0;  // and Token::top with so many
  // Both tell the probabilities that the draw was made by, which are those after temperature,
  // penalties and cuts, of the tokens that were left by them; a token that is chosen without a draw
  // has 1.
  bool logprobs_of_draw = false;
  // When the context is full: a part of what was read is forgotten, what follows it is read again
  // in its place, and the text goes on, as one would whose prompt had never had that part (context
  // shift, as llama.cpp calls it, which moves keys in the place of reading again). Not for
  // recurrent layers.
  bool shift_context = false;
  int64_t keep_tokens = 0;   // of the beginning of all that was read: are never forgotten
  int64_t shift_tokens = 0;  // are forgotten at a time; 0: half of what may be
  // What the text may be: a grammar in GBNF (root rule `root`), or a JSON schema as JSON (draft
  // 2020-12, docs/sampling.md); not both. It ends where the grammar ends. Needs a tokenizer.
  std::string grammar{};
  std::string json_schema{};
  // The grammar or schema and SamplerOptions::banned_strings, compiled by Model::compile_rules()
  // with these options; shared by any number of texts. Null: they are compiled when the text
  // starts.
  std::shared_ptr<const CompiledRules> rules{};
  // Speculative decoding: tokens are guessed and checked several at a time. The tokens drawn are
  // those without it, whatever is guessed. Guesses: of a smaller model with the same vocabulary, in
  // a session that is used for nothing else until the text has ended; or what followed the last
  // tokens where they stood before, in this text or in another one (loom/lookup.hpp), which stays
  // with the caller and is asked first.
  ModelSession* draft = nullptr;
  bool lookup = false;
  const LookupText* lookup_text = nullptr;
  int64_t guesses = 8;  // at a time; 1 to 64
  // A draft guesses as long as it holds all guesses of a pass together for right with at least this
  // probability, 0 to 1; 0: as many as `guesses` says.
  float guess_chance = 0.5f;
  // Called for every token that is part of the text; false stops with `cancelled`.
  std::function<bool(const Token& token)> on_token{};
  // Called while the prompt is read, with tokens done and in all; false stops with `cancelled`.
  std::function<bool(int64_t done, int64_t total)> prefill_progress{};
};

// New text, whole UTF-8 characters; false stops with `cancelled`.
using TextSink = std::function<bool(std::string_view text)>;

enum class StopReason : uint8_t {
  eos,          // the model ended the text
  stop_string,  // a stop string appeared
  length,       // max_tokens are written
  context,      // the context of the session is full
  cancelled     // a callback said so
};
LOOM_API std::string_view stop_reason_name(StopReason reason);

struct Generation {
  // What the sink was given, in one piece: the text that the tokens add to that of the prompt and
  // of what the session had read before it.
  std::string text;
  // The tokens drawn, without the one that ended the text (eos). The tokens that make up a stop
  // string are among them.
  std::vector<TokenId> token_ids;
  std::vector<float> logprobs;  // of token_ids, where they were asked for
  StopReason stop = StopReason::length;
  int64_t prompt_tokens = 0;
  int64_t unknown_tokens = 0;    // of token_ids, those that the tokenizer has no text for
  int64_t decode_steps = 0;      // tokens fed after the prompt whose logits were used
  int64_t forgotten_tokens = 0;  // by GenerateOptions::shift_context
  int64_t guessed = 0;           // tokens that were guessed
  int64_t accepted = 0;          // of these, those that were drawn
  int64_t passes = 0;            // forward passes after the prompt, where tokens were guessed
  int64_t guess_passes = 0;      // of these, those that checked guesses
  double prefill_seconds = 0.0;  // reading the prompt
  double decode_seconds = 0.0;   // everything after it
};

// Can GenerateOptions::grammar or ::json_schema hold a text? Errors: those that generating gives,
// without a model. Use it where they come from a file.
LOOM_API Status check_rules(const GenerateOptions& options);

}  // namespace loom
