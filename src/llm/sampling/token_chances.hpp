// Probabilities of tokens at a position: of the actual token, and of the likeliest.
#pragma once

#include <span>
#include <vector>

#include "loom/generation.hpp"

namespace loom::core {

// Natural logarithms of softmax(logits). NaN has no probability. The sum is in double, in the order
// of the ids.
class TokenChances {
 public:
  // Computes them for the token `drawn` and for the `most` likeliest tokens, best first; of equal
  // ones the lower id first.
  void look(std::span<const float> logits, TokenId drawn, int64_t most);
  float logprob = 0;
  std::vector<TokenChoice> top;

 private:
  std::vector<TokenId> order_;
};

}  // namespace loom::core
