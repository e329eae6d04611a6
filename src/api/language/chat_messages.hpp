// Messages of a conversation as JSON, in the shape of OpenAI's clients and of transformers.
#pragma once

#include <string_view>
#include <vector>

#include "jinja/chat_template.hpp"
#include "loom/reply.hpp"

namespace loom::core {

// A JSON array of objects with "role", "content" (text, null or parts), "tool_calls",
// "tool_call_id", "name", "reasoning_content", and any member that a template reads. Arguments of
// calls that are the text of a JSON object become that object, as templates expect. Errors:
// invalid_argument, naming the message and the member.
Result<std::vector<ChatMessage>> read_messages(std::string_view json);

// Reasoning under the names that templates read, as transformers adds them.
JsonValue with_reasoning(const JsonValue& message);

// Calls that a template would drop, although the message is otherwise empty, are an error.
Status check_calls(const std::vector<ChatMessage>& messages, std::string_view source);

// Arguments of a call as templates read them: an object if the text is one.
JsonValue arguments_json(const std::string& text);

// A parsed reply as an assistant's message: "role", "content" (null next to calls without text),
// "reasoning_content", "tool_calls". A call without an id gets nine letters and digits from the
// prompt, the text and its index.
std::string reply_json(const ParsedReply& reply, std::string_view prompt, std::string_view text);

}  // namespace loom::core
