#include "formats/config/bpe_files.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"
#include "formats/config/fields.hpp"
#include "formats/config/text.hpp"

namespace loom::core {
namespace {

// The class's special tokens if tokenizer_config.json does not define them.
constexpr const char* kSpecial[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
constexpr const char* kEndOfText = "<|endoftext|>";

class BpeFiles {
 public:
  BpeFiles(std::string where, JsonValue vocabulary)
      : where_(std::move(where)), vocabulary_(std::move(vocabulary)) {}

  // Lines "left right"; the first may be a version line, which readers of tokenizer.json skip too.
  void take_merges(std::string_view file) {
    while (!file.empty()) {
      const size_t end = std::min(file.find('\n'), file.size());
      std::string_view line = file.substr(0, end);
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) merges_.push(JsonValue::string(std::string(line)));
      file.remove_prefix(std::min(end + 1, file.size()));
    }
  }

  Status take_config(const JsonValue& config) {
    const ConfigFields fields(config, where_);
    LOOM_TRY(fields.read("add_prefix_space", prefix_space_));
    bool bos = false;
    LOOM_TRY(fields.read("add_bos_token", bos));
    for (const char* key : kSpecial) {
      const std::string token = hf_special_token(config, key);
      if (!token.empty()) add_special(token);
      if (!bos || std::string_view(key) != "bos_token") continue;
      first_ = token.empty() ? kEndOfText : token;
      if (id_of(first_) == nullptr)
        return bad_file(cat("has no token '", printable(first_), "'"), where_);
    }
    return {};
  }

  void add_special(const std::string& token) {
    const JsonValue* id = id_of(token);
    if (id == nullptr || std::ranges::find(special_, token) != special_.end()) return;
    special_.push_back(token);
    JsonValue added = JsonValue::object({{"id", *id}, {"content", JsonValue::string(token)}});
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized"})
      added.add(key, JsonValue::boolean(false));
    added.add("special", JsonValue::boolean(true));
    added_.push(std::move(added));
  }

  std::string text() && {
    JsonValue out = JsonValue::object();
    out.add("version", JsonValue::string("1.0"));
    JsonValue after = after_text();
    out.add("added_tokens", std::move(added_));
    out.add("normalizer", JsonValue());
    out.add("pre_tokenizer", bytes(prefix_space_));
    out.add("post_processor", std::move(after));
    out.add("decoder", bytes(true));
    out.add("model", JsonValue::object({{"type", JsonValue::string("BPE")},
                                        {"vocab", std::move(vocabulary_)},
                                        {"merges", std::move(merges_)}}));
    return dump_json(out);
  }

 private:
  const JsonValue* id_of(const std::string& token) const { return vocabulary_.find(token); }

  static JsonValue bytes(bool prefix_space) {
    return JsonValue::object({{"type", JsonValue::string("ByteLevel")},
                              {"add_prefix_space", JsonValue::boolean(prefix_space)},
                              {"trim_offsets", JsonValue::boolean(true)},
                              {"use_regex", JsonValue::boolean(true)}});
  }

  // The token before each text, if there is one.
  JsonValue after_text() const {
    if (first_.empty()) return {};
    const auto piece = [](const char* kind, JsonValue id, int64_t type) {
      return JsonValue::object(
          {{kind,
            JsonValue::object({{"id", std::move(id)}, {"type_id", JsonValue::integer(type)}})}});
    };
    const JsonValue name = JsonValue::string(first_);
    const JsonValue one = JsonValue::array(
        {piece("SpecialToken", name, 0), piece("Sequence", JsonValue::string("A"), 0)});
    const JsonValue two = JsonValue::array(
        {piece("SpecialToken", name, 0), piece("Sequence", JsonValue::string("A"), 0),
         piece("SpecialToken", name, 1), piece("Sequence", JsonValue::string("B"), 1)});
    const JsonValue token = JsonValue::object({{"id", name},
                                               {"ids", JsonValue::array({*id_of(first_)})},
                                               {"tokens", JsonValue::array({name})}});
    return JsonValue::object({{"type", JsonValue::string("TemplateProcessing")},
                              {"single", one},
                              {"pair", two},
                              {"special_tokens", JsonValue::object({{first_, token}})}});
  }

  std::string where_;
  JsonValue vocabulary_, merges_ = JsonValue::array(), added_ = JsonValue::array();
  std::vector<std::string> special_;
  std::string first_;
  bool prefix_space_ = false;
};

}  // namespace

Result<std::string> read_bpe_files(const std::string& folder, const JsonValue* config) {
  const std::string where = folder + "/vocab.json";
  LOOM_ASSIGN(const std::string vocabulary, read_if_there(where));
  LOOM_ASSIGN(const std::string merges, read_if_there(folder + "/merges.txt"));
  if (vocabulary.empty() || merges.empty()) return std::string();
  LOOM_ASSIGN(JsonValue json, parse_json(vocabulary, where));
  if (!json.is_object()) return bad_file("is not a vocabulary: expected an object", where);
  BpeFiles files(where, std::move(json));
  files.take_merges(merges);
  if (config != nullptr) LOOM_TRY(files.take_config(*config));
  files.add_special(kEndOfText);
  return std::move(files).text();
}

}  // namespace loom::core
