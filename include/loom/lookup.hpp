// A text as a source of draft tokens (GenerateOptions::lookup_text): earlier output of a model, or
// text that it is likely to quote. It acts as a small draft model that costs next to nothing. For
// every run of one to six tokens it knows the token that followed most often.
#pragma once

#include <memory>
#include <span>

#include "loom/generation.hpp"

namespace loom {

class LOOM_API LookupText {
 public:
  // All tokens of a text, or of several texts in a row. Memory: at most 96 bytes per token.
  explicit LookupText(std::span<const TokenId> text);
  LookupText(LookupText&&) noexcept;
  LookupText& operator=(LookupText&&) noexcept;
  ~LookupText();

  // The token that followed the longest suffix of `history` that the text contains. It must have
  // followed in at least `share` of the cases; else the result is -1. Among equally frequent
  // ones it is the smallest.
  TokenId next(std::span<const TokenId> history, double share = 0.5) const;

  struct LOOM_LOCAL Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
