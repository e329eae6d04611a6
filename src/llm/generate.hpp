// generate(): prompt in, text out, token by token. It feeds no token whose logits nobody will read:
// the last token drawn is not fed, so a session that goes on must feed it first.
#pragma once

#include <span>

#include "llm/llm_session.hpp"
#include "loom/generation.hpp"

namespace loom::core {

// Feeds `prompt` to the session and draws tokens until a StopReason. An empty prompt goes on from
// the logits that the session holds. The repetition window covers this prompt and what was drawn.
// A model without tokenizer gives tokens and no text. Errors: bad options, an empty prompt at the
// start of a session, a prompt longer than the context.
Result<Generation> generate(LlmSession& session, const LanguageModel& model,
                            std::span<const TokenId> prompt, const GenerateOptions& options,
                            const TextSink& sink = {});

}  // namespace loom::core
