// A request to render a template, as JSON: {"messages": [...], "tools": ..., any variable: ...}.
#pragma once

#include "io/json/json.hpp"
#include "jinja/chat_template.hpp"

namespace loom::core {

// The time is that of tests/outside/templates.py.
inline ChatInputs request_inputs(const JsonValue& json) {
  ChatInputs inputs;
  inputs.now = {2026, 11, 2, 9, 5, 7};
  inputs.add_generation_prompt = false;
  for (const auto& [name, value] : json.members()) {
    if (name == "messages") {
      for (const JsonValue& element : value.elements()) {
        ChatMessage message;
        const JsonValue* role = element.find("role");
        message.role = role != nullptr ? role->text() : "";
        message.more = element;
        inputs.messages.push_back(std::move(message));
      }
    } else if (name == "add_generation_prompt") {
      inputs.add_generation_prompt = value.as_bool("").value_or(false);
    } else if (name == "tools") {
      inputs.tools = value;
    } else if (name == "documents") {
      inputs.documents = value;
    } else {
      inputs.variables.add(name, value);
    }
  }
  return inputs;
}

}  // namespace loom::core
