#include "formats/config/text.hpp"

#include "base/text.hpp"
#include "formats/config/bpe_files.hpp"
#include "formats/config/config.hpp"
#include "formats/config/fields.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

// Joins two templates: transformers uses the one called tool_use if there are tools. The empty
// outputs keep the tags from trimming the text next to them.
std::string with_tools(std::string tool_use, std::string otherwise) {
  for (std::string* text : {&tool_use, &otherwise}) {
    if (text->ends_with('\n')) text->pop_back();
  }
  return cat("{% if tools %}{{ '' }}", tool_use, "{{ '' }}{% else %}{{ '' }}", otherwise,
             "{{ '' }}{% endif %}");
}

// A text, or a list of named texts, of which transformers uses the one called default.
void read_chat_template(const JsonValue& file, ModelSource& out) {
  const JsonValue* value = file.find("chat_template");
  if (value == nullptr) return;
  out.chat_problem.clear();
  out.chat_template = value->text();
  if (!value->is_array()) return;
  std::vector<std::string> names;
  std::string tool_use;
  for (const JsonValue& item : value->elements()) {
    const JsonValue *name = item.find("name"), *text = item.find("template");
    if (name == nullptr || text == nullptr) continue;
    if (name->text() == "default") out.chat_template = text->text();
    if (name->text() == "tool_use") tool_use = text->text();
    names.push_back(cat("'", printable(name->text()), "'"));
  }
  if (!out.chat_template.empty() && !tool_use.empty())
    out.chat_template = with_tools(std::move(tool_use), std::move(out.chat_template));
  if (!out.chat_template.empty()) return;
  out.chat_problem = cat("its chat templates are called ", join(names, ", "),
                         "; the one that is used must be called 'default'");
}

// vocab.txt, of folders older than tokenizer.json, with the settings of tokenizer_config.json.
Status read_bert_vocabulary(const std::string& folder, const std::string& config,
                            ModelSource& out) {
  const std::string path = folder + "/vocab.txt";
  LOOM_ASSIGN(const std::string lines, read_if_there(path));
  if (lines.empty()) return {};
  BertTextOptions options;
  if (!config.empty()) {
    const std::string where = folder + "/tokenizer_config.json";
    LOOM_ASSIGN(const JsonValue json, parse_json(config, where));
    const ConfigFields fields(json, where);
    LOOM_TRY(fields.read("do_lower_case", options.lowercases));
    LOOM_TRY(fields.read("tokenize_chinese_chars", options.spaces_ideographs));
    if (fields.find("strip_accents") != nullptr)
      LOOM_TRY(fields.read("strip_accents", options.strips_accents.emplace()));
    for (const auto& [key, token] :
         {std::pair("unk_token", &options.unk), std::pair("cls_token", &options.cls),
          std::pair("sep_token", &options.sep), std::pair("pad_token", &options.pad),
          std::pair("mask_token", &options.mask)}) {
      const std::string named = hf_special_token(json, key);
      if (!named.empty()) *token = named;
    }
  }
  LOOM_ASSIGN(out.tokenizer, bert_tokenizer_spec(lines, options, path));
  return {};
}

}  // namespace

std::string hf_special_token(const JsonValue& config, std::string_view key) {
  const JsonValue* value = config.find(key);
  if (value == nullptr) return {};
  if (const JsonValue* content = value->find("content")) return content->text();
  return value->text();
}

std::string config_text(const ModelSource& source) {
  return source.config_json.empty() ? hf_config_json(source.config) : source.config_json;
}

Result<std::string> read_if_there(const std::string& path) {
  if (!file_exists(path)) return std::string();
  return read_file(path);
}

Status read_hf_text(const std::string& folder, ModelSource& out) {
  out.tokenizer_where = folder + "/tokenizer.json";
  LOOM_ASSIGN(out.tokenizer_json, read_if_there(out.tokenizer_where));
  const std::string config_path = folder + "/tokenizer_config.json";
  LOOM_ASSIGN(const std::string config_text, read_if_there(config_path));
  JsonValue json;
  if (!config_text.empty()) {
    LOOM_ASSIGN(json, parse_json(config_text, config_path));
    out.bos = hf_special_token(json, "bos_token");
    out.eos = hf_special_token(json, "eos_token");
    read_chat_template(json, out);
  }
  const std::string json_path = folder + "/chat_template.json";
  LOOM_ASSIGN(const std::string chat_json, read_if_there(json_path));
  if (!chat_json.empty()) {
    LOOM_ASSIGN(const JsonValue chat, parse_json(chat_json, json_path));
    read_chat_template(chat, out);
  }
  if (out.tokenizer_json.empty()) LOOM_TRY(read_bert_vocabulary(folder, config_text, out));
  if (out.tokenizer_json.empty() && !out.tokenizer) {
    out.tokenizer_where = folder + "/vocab.json";
    LOOM_ASSIGN(out.tokenizer_json, read_bpe_files(folder, config_text.empty() ? nullptr : &json));
  }
  const std::string chat_path = folder + "/chat_template.jinja";
  if (file_exists(chat_path)) {
    LOOM_ASSIGN(out.chat_template, read_file(chat_path));
    out.chat_problem.clear();
  }
  return {};
}

}  // namespace loom::core
