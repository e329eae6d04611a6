// The hash of the logits of a prompt: what `loom verify hash` prints.
#pragma once

#include <span>
#include <string>

#include "llm/sessions/llm_session.hpp"
#include "train_io/bits_hash.hpp"

namespace loom::core {

// Feeds `ids` and returns the hash of the logits of every position.
Result<std::string> hash_logits(LlmSession& session, std::span<const TokenId> ids);

}  // namespace loom::core
