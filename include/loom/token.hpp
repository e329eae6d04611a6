// Tokens: ids, biases, and a sampled token as a callback gets it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

using TokenId = int32_t;

struct CompiledRules;
class LookupText;
class Model;
class ModelSession;

struct TokenBias {
  TokenId id = 0;
  float bias = 0;  // added to the logit
};

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

}  // namespace loom
