#include "lab/logits_hash.hpp"

namespace loom::core {

Result<std::string> hash_logits(LlmSession& session, std::span<const TokenId> ids) {
  BitsHash hash;
  LOOM_TRY(session.feed_all(ids, [&](int64_t, std::span<const float> logits) -> Status {
    hash.add(logits);
    return {};
  }));
  return hash.hex();
}

}  // namespace loom::core
