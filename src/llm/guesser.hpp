// Guesser: tokens that may come next, for speculative decoding. Whatever it guesses, the text is
// the same: every token is drawn from the logits of the model itself.
#pragma once

#include <span>
#include <vector>

#include "llm/sampler.hpp"
#include "llm/token_reader.hpp"
#include "loom/generation.hpp"

namespace loom::core {

class Guesser {
 public:
  // draft: a smaller model with the same vocabulary, or null. Errors: invalid_argument (another
  // vocabulary, a count or a probability out of range).
  static Result<Guesser> create(const GenerateOptions& options, TokenReader* draft, int64_t vocab);

  bool guesses() const { return draft_ != nullptr || lookup_ || text_ != nullptr; }
  // At most `most` tokens after `history`, best guess first; maybe none. `drawing`: who will draw
  // them, so that a draft draws with the same random numbers.
  Status guess(std::vector<TokenId>& history, size_t most, const Sampler& drawing,
               std::vector<TokenId>& out);
  // How many of the guesses of a pass were right, counted up to the first that was not. Every
  // guess makes the pass longer, so the next ones are about as many as were right, none for a
  // while where none are, and twice as many, up to GenerateOptions::guesses, where all were. Those
  // of a draft end where it is unsure (guess_chance), so that their number falls by half at most.
  void heard(size_t guessed, size_t right);

 private:
  explicit Guesser(Sampler sampler) : sampler_(std::move(sampler)) {}
  Status ask_draft(std::vector<TokenId>& history, size_t most, std::vector<TokenId>& out);
  void ask_text(std::vector<TokenId>& history, size_t most, std::vector<TokenId>& out) const;
  static void look_up(std::span<const TokenId> history, size_t most, std::vector<TokenId>& out);

  TokenReader* draft_ = nullptr;
  bool lookup_ = false;
  const LookupText* text_ = nullptr;
  size_t most_ = 0;
  double chance_ = 0;             // that all guesses of a draft are right
  size_t length_ = 0;             // guesses of the next pass
  size_t pause_ = 0, waits_ = 0;  // passes without guesses after the last miss, and still to come
  int64_t vocab_ = 0;
  Sampler sampler_;
};

}  // namespace loom::core
