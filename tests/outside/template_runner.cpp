// Renders chat templates for tests/outside/templates.py: a line of JSON in, a line of JSON out.
// In: {"template": text, "inputs": {"messages": [...], "tools": ..., any variable: ...}}.
// Out: {"text": ...} or {"error": ...}.
#include <iostream>
#include <string>

#include "io/json/json.hpp"
#include "jinja/chat_template.hpp"
#include "jinja/request.hpp"

namespace {

using loom::core::JsonValue;

loom::Result<std::string> render(const JsonValue& request) {
  const auto chat = loom::core::ChatTemplate::parse(request.find("template")->text(), "template");
  if (!chat.ok()) return chat.error();
  return chat->render(loom::core::request_inputs(*request.find("inputs")));
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
