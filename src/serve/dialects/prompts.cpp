// Prompts in JSON: texts, tokens, and both mixed.
#include <algorithm>

#include "base/text.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {

Result<std::vector<TokenId>> read_ids(const Service& service, const JsonValue& value,
                                      std::string_view name) {
  std::vector<TokenId> out;
  const int64_t last = service.model().info().vocab - 1;
  for (const JsonValue& id : value.elements()) {
    int64_t number = 0;
    LOOM_TRY(take_int(id, cat("a token of ", name), 0, last, number));
    out.push_back(static_cast<TokenId>(number));
  }
  return out;
}

// A text, tokens, both mixed, or {"prompt_string": a text}. A text at the start of the prompt gets
// the tokenizer's own tokens.
Result<std::vector<TokenId>> read_prompt(const Service& service, const JsonValue& prompt,
                                         const HttpReply& reply) {
  if (prompt.is_string()) return service.tokenize(prompt.text(), reply);
  if (const JsonValue* text = prompt.find("prompt_string"); text != nullptr) {
    const JsonValue* media = prompt.find("multimodal_data");
    if (media != nullptr) LOOM_TRY(must_be_off(*media, "multimodal_data"));
    if (text->is_string()) return service.tokenize(text->text(), reply);
  }
  if (const JsonValue* content = prompt.find("content"); content != nullptr) {
    if (!content->is_array())
      return invalid(cat("content must be a list of parts; got ", content->describe()));
    LOOM_ASSIGN(const std::string text, content_text(*content, "content"));
    return service.tokenize(text, reply);
  }
  if (!prompt.is_array())
    return invalid(cat("prompt may hold texts or lists of tokens; got ", prompt.describe()));
  if (std::ranges::none_of(prompt.elements(), [](auto& part) { return part.is_string(); }))
    return read_ids(service, prompt, "prompt");
  std::vector<TokenId> out;
  for (const JsonValue& part : prompt.elements()) {
    JsonValue one = JsonValue::array();
    one.push(part);
    LOOM_ASSIGN(const std::vector<TokenId> ids,
                part.is_string() ? service.tokenize(part.text(), reply, out.empty())
                                 : read_ids(service, one, "prompt"));
    out.insert(out.end(), ids.begin(), ids.end());
  }
  return out;
}

Result<std::vector<std::vector<TokenId>>> read_prompts(const Service& service,
                                                       const JsonValue& value,
                                                       const HttpReply& reply) {
  std::vector<std::vector<TokenId>> out;
  const std::vector<JsonValue>& parts = value.elements();
  if (!value.is_array() || std::ranges::any_of(parts, [](auto& p) { return p.is_number(); })) {
    LOOM_ASSIGN(std::vector<TokenId> ids, read_prompt(service, value, reply));
    out.push_back(std::move(ids));
    return out;
  }
  constexpr size_t kMax = 64;
  if (parts.empty() || parts.size() > kMax) {
    return invalid(cat("prompt must be a text, a list of tokens, or a list of 1 to ", kMax,
                       " of them; got ", value.describe()));
  }
  for (const JsonValue& prompt : parts) {
    LOOM_ASSIGN(std::vector<TokenId> ids, read_prompt(service, prompt, reply));
    out.push_back(std::move(ids));
  }
  return out;
}

}  // namespace loom::core
