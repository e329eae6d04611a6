// Turns of the public interface as the chat template takes them.
#pragma once

#include <span>

#include "jinja/chat_template.hpp"
#include "loom/language_model.hpp"

namespace loom::core {

// Messages, tools, documents and variables; the date and the tokens of the model are the caller's.
// Errors: invalid_argument (JSON that cannot be read or is of the wrong kind).
Result<ChatInputs> chat_inputs(std::span<const ChatTurn> turns, const ChatOptions& options);

}  // namespace loom::core
