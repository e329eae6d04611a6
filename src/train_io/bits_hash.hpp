// BitsHash: XXH3-128 over the little-endian f32 bits of numbers (logits, weights), in the order of
// add(). It finds differing bits. It is not a signature.
#pragma once

#include <span>
#include <string>

#include "io/bytes/hash.hpp"
#include "loom/generation.hpp"

namespace loom::core {

class BitsHash {
 public:
  void add(std::span<const float> numbers);
  std::string hex() const;  // 32 digits

 private:
  BytesHash hash_;
};

// The tokens that benchmarks and hashes are made with: prompt token i and decoded token i.
TokenId prompt_token(int64_t i, int64_t vocab);
TokenId decode_token(int64_t i, int64_t vocab);

}  // namespace loom::core
