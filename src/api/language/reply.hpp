// Turns of the public interface as the chat template takes them.
#pragma once

#include <span>
#include <vector>

#include "jinja/chat_template.hpp"
#include "loom/language_model.hpp"

namespace loom::core {

// Turns as messages of a template. Errors: invalid_argument (ChatTurn::more is not an object).
Result<std::vector<ChatMessage>> turn_messages(std::span<const ChatTurn> turns);

// Messages, tools, documents and variables; the date and the tokens of the model are the caller's.
// Errors: invalid_argument (JSON that cannot be read or is of the wrong kind).
Result<ChatInputs> chat_inputs(std::vector<ChatMessage> messages, const ChatOptions& options);

}  // namespace loom::core
