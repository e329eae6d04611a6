#include "llm/gguf_pre.hpp"

#include <optional>
#include <string>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
// The default of llama.cpp leaves runs of white space whole.
constexpr std::string_view kGpt2NoEnd =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)";
constexpr std::string_view kLlama3 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kQwen2 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kTekken =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|"
    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kGpt4o =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

const std::vector<GgufPre>& rows() {
  static const std::vector<GgufPre> kPres = {
      {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2NoEnd, "\\p{N}+", "[0-9][0-9][0-9]"}},
      {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de mpt olmo mellum gigachat", {kGpt2}},
      {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2", {kLlama3}, false, true, true},
      {"dbrx smaug-bpe", {kLlama3}},
      {"qwen2 deepseek-r1-qwen megrez", {kQwen2}, true},
      {"stablelm2", {kQwen2}},
      {"smollm starcoder refact command-r codeshell exaone minerva-7b", {"\\p{N}", kGpt2}},
      {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", kGpt2, "[0-9][0-9][0-9]"}},
      {"tekken", {kTekken}, false, true, true},
      {"gpt-4o llama4", {kGpt4o}},
  };
  return kPres;
}

// The expressions of one pre-tokenizer step; false: a step that no row has.
bool add_splits(const JsonValue& step, std::vector<std::string>& out) {
  const auto is = [&](const char* key, bool otherwise) {
    const JsonValue* value = step.find(key);
    return value == nullptr || value->is_null() ? otherwise : *value->as_bool("");
  };
  const JsonValue* type = step.find("type");
  if (type == nullptr) return false;
  if (type->text() == "Digits" && is("individual_digits", false)) {
    out.emplace_back("\\p{N}");
    return true;
  }
  if (type->text() == "ByteLevel" && !is("add_prefix_space", true)) {
    if (is("use_regex", true)) out.emplace_back(kGpt2);
    return true;
  }
  if (type->text() != "Split" || is("invert", false)) return false;
  const JsonValue *pattern = step.find("pattern"), *behavior = step.find("behavior");
  const JsonValue* regex = pattern == nullptr ? nullptr : pattern->find("Regex");
  if (regex == nullptr || behavior == nullptr || behavior->text() != "Isolated") return false;
  out.push_back(regex->text());
  return true;
}

bool splits_of(const JsonValue& tokenizer, std::vector<std::string>& out) {
  const JsonValue* pre = tokenizer.find("pre_tokenizer");
  if (pre == nullptr) return false;
  const JsonValue* steps = pre->find("pretokenizers");
  if (steps == nullptr) return add_splits(*pre, out);
  for (const JsonValue& step : steps->elements())
    if (!add_splits(step, out)) return false;
  return true;
}

}  // namespace

const GgufPre* find_gguf_pre(std::string_view name) {
  for (const GgufPre& row : rows()) {
    std::string_view rest = row.names;
    while (!rest.empty()) {
      const size_t space = rest.find(' ');
      if (rest.substr(0, space) == name) return &row;
      rest = space == std::string_view::npos ? "" : rest.substr(space + 1);
    }
  }
  return nullptr;
}

JsonValue pre_tokenizer_json(const GgufPre& pre) {
  JsonValue steps = JsonValue::array();
  for (const std::string_view regex : pre.splits) {
    JsonValue pattern = JsonValue::object({{"Regex", json_text(regex)}});
    steps.push(JsonValue::object({{"type", json_text("Split")},
                                  {"pattern", std::move(pattern)},
                                  {"behavior", json_text("Isolated")},
                                  {"invert", JsonValue::boolean(false)}}));
  }
  steps.push(JsonValue::object({{"type", json_text("ByteLevel")},
                                {"add_prefix_space", JsonValue::boolean(false)},
                                {"trim_offsets", JsonValue::boolean(true)},
                                {"use_regex", JsonValue::boolean(false)}}));
  return JsonValue::object({{"type", json_text("Sequence")}, {"pretokenizers", std::move(steps)}});
}

JsonValue normalizer_json(const GgufPre& pre) {
  if (!pre.nfc) return {};
  return JsonValue::object({{"type", json_text("NFC")}});
}

const GgufPre* recognize_gguf_pre(const JsonValue& tokenizer) {
  std::vector<std::string> splits;
  if (!splits_of(tokenizer, splits)) return nullptr;
  const JsonValue *normalizer = tokenizer.find("normalizer"), *model = tokenizer.find("model");
  const JsonValue* ignore = model == nullptr ? nullptr : model->find("ignore_merges");
  const bool ignores = ignore != nullptr && ignore->is_bool() && *ignore->as_bool("");
  const bool normalizes = normalizer != nullptr && !normalizer->is_null();
  const JsonValue* form = normalizes ? normalizer->find("type") : nullptr;
  const bool nfc = form != nullptr && form->text() == "NFC";
  if (normalizes && !nfc) return nullptr;
  for (const GgufPre& row : rows()) {
    const bool same =
        std::equal(row.splits.begin(), row.splits.end(), splits.begin(), splits.end());
    if (same && row.nfc == nfc && row.ignore_merges == ignores) return &row;
  }
  return nullptr;
}

}  // namespace loom::core
