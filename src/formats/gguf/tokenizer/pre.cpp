#include "formats/gguf/tokenizer/pre.hpp"

#include <algorithm>
#include <string>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kGpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
// llama.cpp's default keeps runs of white space together.
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
bool add_splits(const text::PreTokenizerStep& step, std::vector<std::string_view>& out) {
  using enum text::PreTokenizerKind;
  const bool isolates = step.behavior == text::SplitBehavior::isolated;
  if (step.kind == digits && isolates) {
    out.emplace_back("\\p{N}");
    return true;
  }
  if (step.kind == byte_level && !step.prefix_space) {
    if (step.splits) out.emplace_back(kGpt2);
    return true;
  }
  if (step.kind != split || step.invert || !step.find.regex || !isolates) return false;
  out.push_back(step.find.text);
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

void add_gguf_pre(const GgufPre& pre, TokenizerSpec& spec) {
  if (pre.nfc) spec.normalizer.emplace_back();
  for (const std::string_view regex : pre.splits) {
    text::PreTokenizerStep step;
    step.where = cat(spec.where, ": pre_tokenizer");
    step.find = {std::string(regex), true, step.where};
    spec.pre_tokenizer.push_back(std::move(step));
  }
  text::PreTokenizerStep bytes;
  bytes.kind = text::PreTokenizerKind::byte_level;
  bytes.splits = false;
  spec.pre_tokenizer.push_back(std::move(bytes));
}

const GgufPre* recognize_gguf_pre(const TokenizerSpec& spec) {
  std::vector<std::string_view> splits;
  for (const text::PreTokenizerStep& step : spec.pre_tokenizer)
    if (!add_splits(step, splits)) return nullptr;
  const bool nfc = spec.normalizer.size() == 1 &&
                   spec.normalizer[0].kind == text::NormalizerKind::form &&
                   spec.normalizer[0].form == text::NormalForm::nfc;
  if (!spec.normalizer.empty() && !nfc) return nullptr;
  for (const GgufPre& row : rows()) {
    const bool same =
        std::equal(row.splits.begin(), row.splits.end(), splits.begin(), splits.end());
    if (same && row.nfc == nfc && row.ignore_merges == spec.model.ignore_merges) return &row;
  }
  return nullptr;
}

}  // namespace loom::core
