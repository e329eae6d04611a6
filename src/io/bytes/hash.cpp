#include "io/bytes/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace loom::core {

struct BytesHash::State {
  XXH3_state_t xxh;
};

BytesHash::BytesHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(&state_->xxh);
}
BytesHash::BytesHash(BytesHash&&) noexcept = default;
BytesHash::~BytesHash() = default;

void BytesHash::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
}

std::string BytesHash::hex() const {
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

std::string hash_hex(std::span<const std::byte> bytes) {
  BytesHash hash;
  hash.add(bytes);
  return hash.hex();
}

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace loom::core
