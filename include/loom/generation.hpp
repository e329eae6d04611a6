// Options and results of text generation: plain data shared by the engine and its callers. Sampling
// is a pure function of the logits, the options and the number of tokens sampled so far. It has the
// same bits on every machine.
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

// DRY: a token that would continue a repetition of earlier text loses multiplier * base^(n -
// allowed_length) of its logit. n >= allowed_length is the number of tokens before it that are
// already repeated (p-e-w, 2024, text-generation-webui #5677).
struct DryOptions {
  float multiplier = 0.0f;  // 0 disables it
  float base = 1.75f;
  int64_t allowed_length = 2;
  int64_t window = 0;  // tokens to look back, prompt included; 0 means all
  // A repetition ends at a token whose text contains one of these. Empty means a line end, a colon,
  // a quote and an asterisk.
  std::vector<std::string> breakers{};
};

// How the next token is chosen from the logits. The order is: biases; repetition, frequency and
// presence penalties; DRY; removal of tokens that are banned, complete an n-gram or violate the
// grammar. Then temperature 0 takes the first largest logit. Mirostat applies temperature and
// mirostat. Otherwise top-n-sigma, temperature, top-k, typical, top-p, min-p and XTC follow, and a
// random draw. docs/sampling.md has the formulas and their sources.
struct SamplerOptions {
  float temperature = 0.0f;  // 0 means greedy; else logits are divided by it
  int64_t top_k = 0;         // keep the k most likely tokens; 0 means all
  float top_p = 1.0f;        // keep the fewest with this total probability; (0, 1]
  float min_p = 0.0f;        // keep those with at least this share of the best one's; [0, 1]
  // Logits of tokens in the window: divided by the penalty if positive, else multiplied (Keskar et
  // al., 2019).
  float repetition_penalty = 1.0f;
  int64_t repetition_window = 64;  // tokens to look back, prompt included; 0 means all
  uint64_t seed = 0;

  // Subtracted from logits of tokens in the same window: the frequency penalty per occurrence, the
  // presence penalty once (OpenAI).
  float frequency_penalty = 0.0f, presence_penalty = 0.0f;
  int64_t no_repeat_ngram = 0;  // an n-gram of this length never repeats; 0 disables it
  DryOptions dry{};
  float typical_p = 1.0f;    // keep the share whose surprise is nearest to the entropy; (0, 1]
  float top_n_sigma = 0.0f;  // keep logits within n deviations of the largest; 0 disables it
  // With this probability, of all tokens with at least the threshold probability, only the least
  // likely one is kept.
  float xtc_probability = 0.0f, xtc_threshold = 0.1f;
  // Temperature from temperature - range to + range, by (entropy / its maximum)^exponent.
  float dynamic_range = 0.0f, dynamic_exponent = 1.0f;
  // 1 or 2 keeps the surprise of each token near tau bits (Basu et al., 2021); 0 disables it.
  int64_t mirostat = 0;
  float mirostat_tau = 5.0f, mirostat_eta = 0.1f;
  std::vector<TokenBias> logit_bias{};
  std::vector<TokenId> banned_tokens{};
  // Texts that never appear: a token that would complete one is removed.
  std::vector<std::string> banned_strings{};
};

// The seed of text number `choice` of several; the first uses `seed` itself.
LOOM_API uint64_t choice_seed(uint64_t seed, int64_t choice);

struct TokenChoice {
  TokenId id = 0;
  float logprob = 0;  // natural logarithm of its probability
};

// A sampled token. Probabilities are those of the model: softmax of the logits, before temperature,
// penalties and truncation.
struct Token {
  TokenId id = 0;
  std::string_view text;             // added text in whole characters; valid during the call
  float logprob = 0;                 // with GenerateOptions::logprobs
  std::span<const TokenChoice> top;  // the most likely tokens at this position, best first
};

struct GenerateOptions {
  int64_t max_tokens = 256;
  SamplerOptions sampler{};
  // Generation ends at one of these; it is not part of the text. Valid UTF-8, not empty.
  std::vector<std::string> stop{};
  // Tokens that end the text; empty means those of the model.
  std::vector<TokenId> eos_ids{};
  bool ignore_eos = false;
  bool special_text = false;  // tokens that are chat marks become text too: ReplyParser reads them
  bool logprobs = false;      // fills Token::logprob and Generation::logprobs
  int64_t top_logprobs = 0;   // fills Token::top with that many
  // Both report the probabilities of the draw: after temperature, penalties and truncation, over
  // the remaining tokens. A token that is chosen without a draw has 1.
  bool logprobs_of_draw = false;
  // When the context is full: drops a part of what was read and reads what follows again at its new
  // position, then continues. The text continues as if the prompt had never had that part.
  // (llama.cpp's context shift moves keys instead.) Not for recurrent layers.
  bool shift_context = false;
  int64_t keep_tokens = 0;   // first tokens that are never dropped
  int64_t shift_tokens = 0;  // tokens dropped at a time; 0 means half of the allowed ones
  // Constraint of the text: a grammar in GBNF (root rule `root`), or a JSON schema as JSON (draft
  // 2020-12, docs/sampling.md), not both. The text ends at the end of the grammar. Needs a
  // tokenizer.
  std::string grammar{};
  std::string json_schema{};
  // The grammar or schema and SamplerOptions::banned_strings, compiled by Model::compile_rules()
  // with these options. Any number of texts may share it. If null, they are compiled when the text
  // starts.
  std::shared_ptr<const CompiledRules> rules{};
  // Speculative decoding: several draft tokens are verified in one pass. The result is the same as
  // without it. Draft tokens come from a smaller model with the same vocabulary, in a session that
  // has no other use until the text has ended. Or they come from earlier occurrences of the last
  // tokens, in this text or in a lookup text (loom/lookup.hpp). The caller owns the lookup text,
  // which is consulted first.
  ModelSession* draft = nullptr;
  bool lookup = false;
  const LookupText* lookup_text = nullptr;
  int64_t guesses = 8;  // per pass; 1 to 64
  // The draft model continues while the joint probability of its tokens in a pass is at least this,
  // 0 to 1. With 0 it always drafts `guesses` tokens.
  float guess_chance = 0.5f;
  // Called for every token of the text; false stops with `cancelled`.
  std::function<bool(const Token& token)> on_token{};
  // Called while the prompt is read, with tokens done and total; false stops with `cancelled`.
  std::function<bool(int64_t done, int64_t total)> prefill_progress{};
};

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

}  // namespace loom
