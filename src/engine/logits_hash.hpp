// The hash of the logits of a prompt: what `loom verify hash` prints.
#pragma once

#include <span>
#include <string>

#include "engine/bits_hash.hpp"
#include "llm/llm_session.hpp"

namespace loom {

// Feeds `ids` and returns the hash of the logits of every position.
Result<std::string> hash_logits(LlmSession& session, std::span<const TokenId> ids);

}  // namespace loom
