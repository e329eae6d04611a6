#include "engine/logits_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace loom {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "logits are hashed as they lie in memory");

struct BitsHash::State {
  XXH3_state_t xxh;
};

BitsHash::BitsHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}
BitsHash::~BitsHash() = default;

void BitsHash::add(std::span<const float> logits) {
  XXH3_128bits_update(&state_->xxh, logits.data(), logits.size_bytes());
}

std::string BitsHash::hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
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
