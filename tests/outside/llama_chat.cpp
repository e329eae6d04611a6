// llama.cpp's own chat templates for chats_check.py: a line of JSON in, a line of JSON out.
//   In: {"template", "bos", "eos", "messages", "tools" (optional), "add_generation_prompt"}.
//   Out: {"text": ...} or {"error": ...}.
// Compiled by chats_check.sh with the headers of llama.cpp's source, for its libllama-common.
#include <exception>
#include <iostream>
#include <string>

#include "chat.h"
#include "llama.h"

namespace {

std::string apply(const common_json& request) {
  const auto text = [&](const char* key) { return request.at(key).get<std::string>(); };
  const auto templates =
      common_chat_templates_init(nullptr, text("template"), text("bos"), text("eos"));
  common_chat_templates_inputs inputs;
  inputs.messages = common_chat_msgs_parse_oaicompat(request.at("messages"));
  if (request.contains("tools"))
    inputs.tools = common_chat_tools_parse_oaicompat(request.at("tools"));
  inputs.add_generation_prompt = request.at("add_generation_prompt").get<bool>();
  return common_chat_templates_apply(templates.get(), inputs).prompt;
}

}  // namespace

int main() {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  for (std::string line; std::getline(std::cin, line);) {
    common_json reply;
    try {
      reply["text"] = apply(common_json::parse(line));
    } catch (const std::exception& error) {
      reply["error"] = std::string(error.what());
    }
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}
