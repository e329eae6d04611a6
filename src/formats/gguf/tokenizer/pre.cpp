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

// DeepSeek V3, and the punctuation before its words.
constexpr std::string_view kDeepSeek3 =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|"
    "\\s*[\r\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kIdeographs = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
// Cased letters of DeepSeek LLM, and its punctuation.
constexpr std::string_view kDeepSeekLetters =
    "\\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293"
    "\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c"
    "\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5"
    "\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77"
    "\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc"
    "\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107"
    "\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139"
    "\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee"
    "\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\U00010400-\U0001044f"
    "\U000104b0-\U000104d3\U000104d8-\U000104fb\U00010c80-\U00010cb2\U00010cc0-\U00010cf2"
    "\U000118a0-\U000118df\U0001e900-\U0001e943]+";
constexpr std::string_view kDeepSeekMarks =
    "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+";
constexpr std::string_view kDeepSeekAsian = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+";
constexpr std::string_view kQwen35 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| "
    "?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kBloom = " ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+";
constexpr std::string_view kBailing =
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
constexpr std::string_view kSeed =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| "
    "?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kExaoneMoe =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: "
    "\\p{L}\\p{M}*)*)+|\\p{N}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+";
constexpr std::string_view kUfakzeka =
    "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kMiniCpm5 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}+| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
constexpr std::string_view kJais2 =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| "
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s{512}(?!\\S)|\\s{256}(?!\\S)|"
    "\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|\\s{16}(?!\\S)|\\s{8}(?!\\S)|"
    "\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}";

const std::vector<GgufPre>& rows() {
  static const std::vector<GgufPre> kPres = {
      {"default", {"[\\p{P}\\$\\+<=>\\^~\\|]+", kGpt2NoEnd, "\\p{N}+", "[0-9][0-9][0-9]"}},
      {"gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de mpt olmo mellum gigachat a.x-4.0 "
       "modern-bert exaone4 jais trillion granite-docling",
       {kGpt2}},
      {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral lfm2 midm-2.0 jina-v5-nano",
       {kLlama3},
       false,
       true,
       true},
      {"dbrx smaug-bpe glm4 chatglm-bpe", {kLlama3}},
      {"qwen2 deepseek-r1-qwen megrez kormo f2llmv2", {kQwen2}, true},
      {"qwen35", {kQwen35}, true},
      {"stablelm2 hunyuan solar-open grok-2", {kQwen2}},
      {"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", {"\\p{N}", kGpt2}},
      {"falcon", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", kGpt2, "[0-9][0-9][0-9]"}},
      {"tekken", {kTekken}, false, true, true},
      {"gpt-4o llama4 kanana2 talkie minimax-m2", {kGpt4o}},
      {"granite-embed-multi-97m", {kGpt4o}, false, true},
      {"tiny_aya cohere2moe", {"\\d{1,3}(?=(?:\\d{3})*\\b)", kGpt4o}},
      {"deepseek-llm",
       {"[\r\n]", kDeepSeekLetters, kDeepSeekMarks, "\\s+$", kDeepSeekAsian, "\\p{N}+"}},
      {"deepseek-coder", {"[\r\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", kDeepSeekAsian, "\\p{N}"}},
      {"deepseek-v3 hunyuan-dense joyai-llm hy_v4", {"\\p{N}{1,3}", kIdeographs, kDeepSeek3}},
      {"bloom gpt3-finnish poro-chat", {kBloom}},
      {"viking", {kBloom, "\\p{N}"}},
      {"bailingmoe bailingmoe2 llada-moe", {kBailing}},
      {"seed-coder", {kSeed}},
      {"exaone-moe", {kExaoneMoe}},
      {"ufakzeka", {kUfakzeka}},
      {"laguna", {"[^\\n]+|[\\n]+", kQwen2}},
      {"minicpm5", {"\\p{N}{1,3}", kMiniCpm5}, false, true},
      {"jais-2", {kJais2}},
      {"chameleon",
       {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", "\\p{N}",
        "[\\p{P}!-/:-@\\[-`{-~]", kGpt2},
       false,
       false,
       true},
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
