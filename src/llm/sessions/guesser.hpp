// Guesser: proposes draft tokens for speculative decoding. They do not change the text: every token
// is sampled from the logits of the model itself.
#pragma once

#include <span>
#include <vector>

#include "llm/sampling/sampler.hpp"
#include "llm/token_reader.hpp"
#include "loom/generation.hpp"

namespace loom::core {

class Drafter {
 public:
  // draft: a smaller model with the same vocabulary, or null. Errors: invalid_argument (another
  // vocabulary, a count or a probability out of range).
  static Result<Drafter> create(const GenerateOptions& options, TokenReader* draft, int64_t vocab);

  bool drafts() const { return draft_ != nullptr || lookup_ || text_ != nullptr; }
  // Proposes at most `most` tokens after `history`, maybe none. `drawing`: the sampler that will
  // sample them, so that a draft uses the same random numbers.
  Status guess(std::vector<TokenId>& history, size_t most, const Sampler& drawing,
               std::vector<TokenId>& out);
  // Reports how many draft tokens of a pass were right before the first wrong one. Every draft
  // token makes the pass longer, so the next length follows that number. It doubles up to
  // GenerateOptions::guesses if all were right, and pauses for a while if none were. A draft model
  // ends its drafts when it is unsure (guess_chance), so its length falls by half at most.
  void on_verified(size_t guessed, size_t right);

 private:
  explicit Drafter(Sampler sampler) : sampler_(std::move(sampler)) {}
  Status ask_draft(std::vector<TokenId>& history, size_t most, std::vector<TokenId>& out);
  void ask_text(std::vector<TokenId>& history, size_t most, std::vector<TokenId>& out) const;
  static void look_up(std::span<const TokenId> history, size_t most, std::vector<TokenId>& out);

  TokenReader* draft_ = nullptr;
  bool lookup_ = false;
  const LookupText* text_ = nullptr;
  size_t most_ = 0;
  double chance_ = 0;             // joint probability of a draft
  size_t length_ = 0;             // draft tokens of the next pass
  size_t pause_ = 0, waits_ = 0;  // passes without drafts after the last miss, and those left
  int64_t vocab_ = 0;
  Sampler sampler_;
};

}  // namespace loom::core
