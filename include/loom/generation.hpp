// Options and results of text generation: plain data shared by the engine and its callers.
// Sampling is a pure function of the logits, the options and the number of tokens drawn so far, and
// has the same bits on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"

namespace loom {

using TokenId = int32_t;

// How the next token is chosen from the logits. In this order: repetition penalty; the first
// largest logit if temperature is 0; else temperature, top-k, top-p, min-p, and a draw.
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
};

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
  int64_t decode_steps = 0;      // forward passes after the prompt
  double prefill_seconds = 0.0;  // reading the prompt
  double decode_seconds = 0.0;   // everything after it
};

}  // namespace loom
