#include "engine/logits_hash.hpp"

namespace loom {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "logits are hashed as they lie in memory");

void BitsHash::add(std::span<const float> logits) {
  hash_.add(std::as_bytes(logits));
}

std::string BitsHash::hex() const {
  return hash_.hex();
}

Result<std::string> hash_logits(LlmSession& session, std::span<const TokenId> ids) {
  BitsHash hash;
  LOOM_TRY(session.feed_all(ids, [&](int64_t, std::span<const float> logits) -> Status {
    hash.add(logits);
    return {};
  }));
  return hash.hex();
}

TokenId prompt_token(int64_t i, int64_t vocab) {
  return static_cast<TokenId>((i * 7919 + 13) % vocab);
}
TokenId decode_token(int64_t i, int64_t vocab) {
  return static_cast<TokenId>((i * 104729 + 7) % vocab);
}

}  // namespace loom
