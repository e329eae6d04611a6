// A text that guesses are looked up in (GenerateOptions::lookup_text): what a model wrote before,
// or what it is likely to quote. It is a small draft model that costs next to nothing: of every run
// of one to six tokens it knows the token that followed most often.
#pragma once

#include <memory>
#include <span>

#include "loom/generation.hpp"

namespace loom {

class LOOM_API LookupText {
 public:
  // All tokens of a text, or of several, one after the other. Memory: at most 96 bytes per token.
  explicit LookupText(std::span<const TokenId> text);
  LookupText(LookupText&&) noexcept;
  LookupText& operator=(LookupText&&) noexcept;
  ~LookupText();

  // The token that followed the longest end of `history` that the text holds, if it did so in at
  // least `share` of the cases; else -1. Of several that followed as often the smallest.
  TokenId next(std::span<const TokenId> history, double share = 0.5) const;

  struct LOOM_LOCAL Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
