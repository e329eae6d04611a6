// Renders chat templates for tests/outside/templates.py: a line of JSON in, a line of JSON out.
// In: {"template": text, "inputs": {"messages": [...], "tools": ..., any variable: ...}}.
// Out: {"text": ...} or {"error": ...}.
#include <iostream>
#include <string>

#include "io/json.hpp"
#include "jinja/chat_template.hpp"

namespace {

using loom::core::ChatInputs;
using loom::core::ChatMessage;
using loom::core::JsonValue;

ChatInputs inputs_of(const JsonValue& json) {
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

loom::Result<std::string> render(const JsonValue& request) {
  const auto chat = loom::core::ChatTemplate::parse(request.find("template")->text(), "template");
  if (!chat.ok()) return chat.error();
  return chat->render(inputs_of(*request.find("inputs")));
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = loom::core::parse_json(line, "request");
    JsonValue reply;
    if (!request.ok()) {
      reply.add("error", JsonValue::string(request.error().str()));
    } else {
      const auto text = render(*request);
      reply.add(text.ok() ? "text" : "error",
                JsonValue::string(text.ok() ? *text : text.error().str()));
    }
    std::cout << loom::core::dump_json(reply) << std::endl;
  }
  return 0;
}
