#include "train_io/bits_hash.hpp"

namespace loom::core {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "numbers are hashed as they are in memory");

void BitsHash::add(std::span<const float> numbers) {
  hash_.add(std::as_bytes(numbers));
}

std::string BitsHash::hex() const {
  return hash_.hex();
}

TokenId prompt_token(int64_t i, int64_t vocab) {
  return static_cast<TokenId>((i * 7919 + 13) % vocab);
}
TokenId decode_token(int64_t i, int64_t vocab) {
  return static_cast<TokenId>((i * 104729 + 7) % vocab);
}

}  // namespace loom::core
