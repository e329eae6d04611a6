// See text_config.hpp. Source of the defaults: the text configurations of transformers 5.24. Rotary
// positions of three axes (mrope) are plain ones for text.
#include "formats/config/text_config.hpp"

#include <algorithm>
#include <string_view>

#include "families/family.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kClasses[] = {
    "Gemma3ForConditionalGeneration",         "InternVLForConditionalGeneration",
    "LlavaForConditionalGeneration",          "LlavaNextForConditionalGeneration",
    "LlavaOnevisionForConditionalGeneration", "Mistral3ForConditionalGeneration",
    "Qwen2VLForConditionalGeneration",        "Qwen2_5_VLForConditionalGeneration",
    "Qwen3VLForConditionalGeneration"};

// The model_type of a text configuration, and that of its decoder family. `defaults` are the values
// that differ from the family's, or that the family requires.
struct TextType {
  std::string_view type, family, defaults;
};
constexpr std::string_view kQwenDefaults = R"({"hidden_size": 8192, "intermediate_size": 29568,
  "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
  "vocab_size": 152064, "max_position_embeddings": 32768, "rms_norm_eps": 1e-5,
  "max_window_layers": 80, "rope_theta": 1000000.0})";
constexpr TextType kTypes[] = {
    {"gemma3_text", "gemma3_text", R"({"hidden_size": 2304, "intermediate_size": 9216,
  "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
  "vocab_size": 262208})"},
    {"llama", "llama", R"({"hidden_size": 4096, "intermediate_size": 11008,
  "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000})"},
    {"qwen2_5_vl", "qwen2", kQwenDefaults},
    {"qwen2_5_vl_text", "qwen2", kQwenDefaults},
    {"qwen2_vl", "qwen2", kQwenDefaults},
    {"qwen2_vl_text", "qwen2", kQwenDefaults},
    {"qwen3_vl_text", "qwen3", R"({"rope_theta": 500000.0, "num_key_value_heads": 32})"},
};

// Settings outside text_config that apply to it.
constexpr std::string_view kOuter[] = {
    "tie_word_embeddings", "bos_token_id",        "eos_token_id",        "dtype",
    "torch_dtype",         "quantization_config", "transformers_version"};

bool is_multimodal(const JsonValue& json) {
  const JsonValue* names = json.is_object() ? json.find("architectures") : nullptr;
  if (names == nullptr || names->elements().size() != 1) return false;
  return std::ranges::find(kClasses, names->elements()[0].text()) != std::end(kClasses);
}

JsonValue plain_rope(const JsonValue& rope) {
  if (!rope.is_object()) return rope;
  JsonValue out = JsonValue::object();
  for (const auto& [key, value] : rope.members()) {
    if (key == "mrope_section" || key == "mrope_interleaved") continue;
    out.add(key, value.text() == "mrope" ? JsonValue::string("default") : value);
  }
  return out;
}

// The settings of a text configuration, those outside first.
JsonValue merged(const JsonValue& json, const JsonValue& inner, const TextType& type,
                 const DecoderFamily& family) {
  JsonValue out = JsonValue::object();
  const auto add = [&](std::string_view key, const JsonValue& value) {
    if (out.find(key) == nullptr) out.add(std::string(key), value);
  };
  add("architectures", JsonValue::array({JsonValue::string(std::string(family.hf_class))}));
  add("model_type", JsonValue::string(std::string(family.model_type)));
  for (const std::string_view key : kOuter) {
    const JsonValue* value = json.find(key);
    if (value != nullptr && !value->is_null()) add(key, *value);
  }
  for (const auto& [key, value] : inner.members()) {
    if (key == "final_logit_softcapping") continue;  // the multimodal class does not cap
    const bool rope = key == "rope_scaling" || key == "rope_parameters";
    if (!key.ends_with("_config") || key == "quantization_config")
      add(key, rope ? plain_rope(value) : value);
  }
  const Result<JsonValue> defaults = parse_json(type.defaults, "defaults");
  if (!defaults.ok()) return out;
  const JsonValue* rope = out.find("rope_parameters");
  const bool theta = rope != nullptr && rope->find("rope_theta") != nullptr;
  for (const auto& [key, value] : defaults->members())
    if (key != "rope_theta" || !theta) add(key, value);
  return out;
}

}  // namespace

std::string text_config_json(std::string text) {
  const Result<JsonValue> json = parse_json(text, "config.json");
  if (!json.ok() || !is_multimodal(*json)) return text;
  const JsonValue* inner = json->find("text_config");  // older files have its settings outside
  if (inner == nullptr || !inner->is_object()) inner = &*json;
  const JsonValue* name = inner->find("model_type");
  TextType type{name == nullptr ? "llama" : std::string_view(name->text()), {}, "{}"};
  const auto row = std::ranges::find(kTypes, type.type, &TextType::type);
  if (row != std::end(kTypes)) type = *row;
  const DecoderFamily* family = find_family_of_type(type.family.empty() ? type.type : type.family);
  return family == nullptr ? text : dump_json(merged(*json, *inner, type, *family), 2) + "\n";
}

}  // namespace loom::core
