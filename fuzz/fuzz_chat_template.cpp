// Any bytes as a chat template: refused in one line, or rendered with a small conversation within
// its limits, to valid UTF-8.
#include <string>

#include "check.hpp"
#include "jinja/chat_template.hpp"
#include "text/normalizers/unicode.hpp"

namespace {

void check_error(const loom::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
}

const loom::core::ChatInputs& inputs() {
  static const loom::core::ChatInputs value = [] {
    loom::core::ChatInputs made;
    made.messages = {{"system", "Be brief.", {}}, {"user", "na\xC3\xAFve", {}}};
    made.tools = *loom::core::parse_json(
        R"([{"type": "function", "function": {"name": "f", "parameters": {"a": 1.5}}}])", "tools");
    made.bos_token = "<s>";
    return made;
  }();
  return value;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto chat = loom::core::ChatTemplate::parse(source, "template");
  if (!chat.ok()) {
    check_error(chat.error());
    return 0;
  }
  const auto text = chat->render(inputs());
  if (!text.ok()) {
    check_error(text.error());
  } else {
    CHECK(loom::core::text::is_valid_utf8(*text));
  }
  return 0;
}
