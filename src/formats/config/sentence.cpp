// The files of sentence-transformers, and their settings in an .entity file.
#include <array>

#include "base/text.hpp"
#include "formats/config/encoder.hpp"
#include "formats/config/fields.hpp"
#include "formats/config/text.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

struct PoolingName {
  EncoderPooling how;
  std::string_view name, flag;  // flag: in 1_Pooling/config.json
};
constexpr std::array kPoolings = {
    PoolingName{EncoderPooling::mean, "mean", "pooling_mode_mean_tokens"},
    PoolingName{EncoderPooling::cls, "cls", "pooling_mode_cls_token"},
    PoolingName{EncoderPooling::last, "lasttoken", "pooling_mode_lasttoken"},
    PoolingName{EncoderPooling::max, "max", "pooling_mode_max_tokens"},
    PoolingName{EncoderPooling::weighted_mean, "weightedmean", "pooling_mode_weightedmean_tokens"},
    PoolingName{EncoderPooling::mean_sqrt_len, "mean_sqrt_len_tokens",
                "pooling_mode_mean_sqrt_len_tokens"},
    PoolingName{EncoderPooling::none, "none", ""}};

Result<EncoderPooling> pooling_of(const ConfigFields& fields, std::string_view key) {
  std::string name;
  LOOM_TRY(fields.read(key, name));
  for (const PoolingName& row : kPoolings)
    if (row.name == name) return row.how;
  return fields.refuse(key, cat("'", printable(name), "' is not supported"));
}

Status read_pooling(const JsonValue& json, const std::string& where, EmbeddingSettings& out) {
  const ConfigFields fields(json, where);
  bool with_prompt = true;
  LOOM_TRY(fields.read("include_prompt", with_prompt));
  if (!with_prompt) return fields.refuse("include_prompt", "false is not supported");
  if (fields.find("pooling_mode") != nullptr) {
    LOOM_ASSIGN(out.pooling, pooling_of(fields, "pooling_mode"));
    return {};
  }
  int found = 0;
  for (const PoolingName& row : kPoolings) {
    bool on = false;
    if (!row.flag.empty()) LOOM_TRY(fields.read(row.flag, on));
    if (on) out.pooling = row.how;
    found += on ? 1 : 0;
  }
  if (found == 1) return {};
  return unsupported(cat("asks for ", found, " poolings; one is supported"), where);
}

Result<JsonValue> json_if_there(const std::string& path) {
  LOOM_ASSIGN(const std::string text, read_if_there(path));
  if (text.empty()) return JsonValue::object();
  return parse_json(text, path);
}

Status read_prompts(const JsonValue& json, const std::string& where, EmbeddingSettings& out) {
  const JsonValue* prompts = json.find("prompts");
  if (prompts != nullptr && prompts->is_object()) {
    for (const auto& [name, text] : prompts->members()) {
      if (!text.is_string())
        return bad_file(cat("prompts.", printable(name), ": expected a text"), where);
      out.prompts.emplace_back(name, text.text());
    }
  }
  return ConfigFields(json, where).read("default_prompt_name", out.default_prompt);
}

Status read_module(const std::string& folder, const JsonValue& module, EmbeddingSettings& out) {
  const JsonValue *type = module.find("type"), *path = module.find("path");
  const std::string name = type != nullptr ? type->text() : std::string();
  if (name.ends_with(".Transformer")) return {};
  if (name.ends_with(".Normalize")) {
    out.normalize = true;
    return {};
  }
  if (name.ends_with(".Pooling")) {
    const std::string at = path != nullptr ? path->text() : std::string();
    const bool inside = at.find("..") == std::string::npos && !at.starts_with("/");
    if (!inside)
      return bad_file("a module's path must stay in the folder", folder + "/modules.json");
    const std::string where = folder + "/" + at + "/config.json";
    LOOM_ASSIGN(const JsonValue json, json_if_there(where));
    return read_pooling(json, where, out);
  }
  return unsupported(cat("the module '", printable(name), "' is not supported"),
                     folder + "/modules.json");
}

}  // namespace

Result<std::optional<EmbeddingSettings>> read_sentence_folder(const std::string& folder) {
  std::optional<EmbeddingSettings> none;
  LOOM_ASSIGN(const std::string modules, read_if_there(folder + "/modules.json"));
  if (modules.empty()) return none;
  LOOM_ASSIGN(const JsonValue list, parse_json(modules, folder + "/modules.json"));
  EmbeddingSettings settings;
  settings.normalize = false;
  for (const JsonValue& module : list.elements()) LOOM_TRY(read_module(folder, module, settings));
  const std::string prompts = folder + "/config_sentence_transformers.json";
  LOOM_ASSIGN(const JsonValue more, json_if_there(prompts));
  LOOM_TRY(read_prompts(more, prompts, settings));
  const std::string length = folder + "/sentence_bert_config.json";
  LOOM_ASSIGN(const JsonValue own, json_if_there(length));
  const ConfigFields fields(own, length);
  LOOM_TRY(fields.read("max_seq_length", settings.max_tokens, 1, 1 << 24));
  bool lowers = false;
  LOOM_TRY(fields.read("do_lower_case", lowers));
  if (lowers) return fields.refuse("do_lower_case", "true is not supported");
  return std::optional<EmbeddingSettings>(std::move(settings));
}

std::string embedding_json(const EmbeddingSettings& settings) {
  std::string_view pooling;
  for (const PoolingName& row : kPoolings)
    if (row.how == settings.pooling) pooling = row.name;
  JsonValue prompts = JsonValue::object();
  for (const auto& [name, text] : settings.prompts) prompts.add(name, JsonValue::string(text));
  JsonValue out = JsonValue::object({{"pooling", JsonValue::string(std::string(pooling))}});
  out.add("normalize", JsonValue::boolean(settings.normalize));
  out.add("max_tokens", JsonValue::integer(settings.max_tokens));
  out.add("prompts", std::move(prompts));
  out.add("default_prompt_name", JsonValue::string(settings.default_prompt));
  return dump_json(out);
}

Result<EmbeddingSettings> parse_embedding_json(std::string_view json, const std::string& where) {
  LOOM_ASSIGN(const JsonValue value, parse_json(json, where));
  const ConfigFields fields(value, where);
  EmbeddingSettings settings;
  LOOM_ASSIGN(settings.pooling, pooling_of(fields, "pooling"));
  LOOM_TRY(fields.read("normalize", settings.normalize));
  LOOM_TRY(fields.read("max_tokens", settings.max_tokens, 0, 1 << 24));
  LOOM_TRY(read_prompts(value, where, settings));
  return settings;
}

}  // namespace loom::core
