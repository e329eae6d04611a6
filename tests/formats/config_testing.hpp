// A small good config.json to change one field at a time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/io_testing.hpp"

namespace loom::core::test {

using ConfigChanges = std::vector<std::pair<std::string, std::string>>;

// The text of a Llama config with these fields added or replaced; an empty value removes a field.
inline std::string config_text(const ConfigChanges& changes = {}) {
  ConfigChanges fields = {{"architectures", R"(["LlamaForCausalLM"])"},
                          {"model_type", R"("llama")"},
                          {"hidden_size", "64"},
                          {"intermediate_size", "128"},
                          {"num_hidden_layers", "2"},
                          {"num_attention_heads", "4"},
                          {"vocab_size", "100"}};
  for (const auto& change : changes) {
    bool replaced = false;
    for (auto& field : fields) {
      if (field.first == change.first) {
        field.second = change.second;
        replaced = true;
      }
    }
    if (!replaced) fields.push_back(change);
  }
  std::string text = "{";
  for (const auto& [key, value] : fields) {
    if (value.empty()) continue;
    if (text.size() > 1) text += ",";
    text += '"' + key + "\":" + value;
  }
  return text + "}";
}

}  // namespace loom::core::test
