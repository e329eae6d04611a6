// Reads the member "normalizer". Steps that are not listed in read_normal_step are refused by name.
#include "text/tokenizer_json.hpp"

namespace loom::core::text {
namespace {

Status read_bert_normalizer(const Node& node, NormalizerStep& step) {
  LOOM_TRY(node.expect_keys(
      {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}));
  step.kind = NormalizerKind::bert;
  LOOM_ASSIGN(step.clean_text, node.boolean("clean_text"));
  LOOM_ASSIGN(step.spaces_ideographs, node.boolean("handle_chinese_chars"));
  LOOM_ASSIGN(step.lowercases, node.boolean("lowercase"));
  if (!node.has_value("strip_accents")) return {};
  LOOM_ASSIGN(step.strips_accents, node.boolean("strip_accents"));
  return {};
}

// Steps without options that are replacements. StripAccents removes marks; Nmt removes controls,
// and makes some other characters spaces.
struct Replacement {
  std::string_view type, find, content;
};
// Marks of Unicode 9, as HF `tokenizers` has them.
constexpr std::string_view kMarks =
    "[\\p{M}\\u1cf2\\u1cf3&&[^\\u07fd\\u0897-\\u08d3\\u09fe\\u0afa-\\u0aff\\u0b55"
    "\\u0c04-\\u0c3c\\u0cf3-\\u0d00\\u0d3b-\\u0d3c\\u0d81\\u0eba\\u0ece\\u1715\\u180f"
    "\\u1abf-\\u1ace\\u1cf7\\u1df6-\\u1dfa\\ua82c\\ua8ff\\x{10d24}-\\x{10f85}"
    "\\x{11070}-\\x{11074}\\x{110c2}\\x{11145}-\\x{11146}\\x{111c9}\\x{111ce}-\\x{111cf}"
    "\\x{11241}\\x{1133b}\\x{113b8}-\\x{113e2}\\x{1145e}\\x{1182c}-\\x{11a99}"
    "\\x{11d31}-\\x{1612f}\\x{16f4f}\\x{16f7f}-\\x{16f87}\\x{16fe4}-\\x{16ff1}"
    "\\x{1cf00}-\\x{1cf46}\\x{1e08f}-\\x{1e5ef}]]";
constexpr Replacement kReplacements[] = {
    {"StripAccents", kMarks, ""},
    {"Nmt", "[\\x01-\\x08\\x0b\\x0e-\\x1f\\x7f\\u008f\\u009f]", ""},
    {"Nmt", "[\\t\\n\\f\\r\\u1680\\u200b-\\u200f\\u2028\\u2029\\u2581\\ufeff\\ufffd]", " "},
};

Status read_replacements(const Node& node, std::vector<NormalizerStep>& steps) {
  LOOM_ASSIGN(const std::string type, node.string("type"));
  for (const Replacement& one : kReplacements) {
    if (one.type != type) continue;
    LOOM_TRY(node.expect_keys({"type"}));
    NormalizerStep step;
    step.kind = NormalizerKind::replace;
    step.where = node.where();
    step.find = {std::string(one.find), true, step.where};
    step.content = one.content;
    steps.push_back(std::move(step));
  }
  return {};
}

Result<NormalizerStep> read_normal_step(const Node& node) {
  LOOM_ASSIGN(const std::string type, node.string("type"));
  NormalizerStep step;
  step.where = node.where();
  static constexpr std::string_view kForms[] = {"NFC", "NFD", "NFKC", "NFKD"};
  for (size_t i = 0; i < std::size(kForms); ++i) {
    if (type != kForms[i]) continue;
    LOOM_TRY(node.expect_keys({"type"}));
    step.form = static_cast<NormalForm>(i);
    return step;
  }
  if (type == "Lowercase") {
    step.kind = NormalizerKind::lowercase;
    LOOM_TRY(node.expect_keys({"type"}));
  } else if (type == "Replace") {
    step.kind = NormalizerKind::replace;
    LOOM_TRY(node.expect_keys({"type", "pattern", "content"}));
    LOOM_ASSIGN(const Node pattern, node.child("pattern"));
    LOOM_ASSIGN(step.find, read_pattern(pattern));
    LOOM_ASSIGN(step.content, node.string("content"));
  } else if (type == "Prepend") {
    step.kind = NormalizerKind::prepend;
    LOOM_TRY(node.expect_keys({"type", "prepend"}));
    LOOM_ASSIGN(step.content, node.string("prepend"));
  } else if (type == "Strip") {
    step.kind = NormalizerKind::strip;
    LOOM_TRY(node.expect_keys({"type", "strip_left", "strip_right"}));
    LOOM_ASSIGN(step.left, node.boolean("strip_left"));
    LOOM_ASSIGN(step.right, node.boolean("strip_right"));
  } else if (type == "BertNormalizer") {
    LOOM_TRY(read_bert_normalizer(node, step));
  } else if (type == "Precompiled") {
    step.kind = NormalizerKind::charsmap;
    LOOM_TRY(node.expect_keys({"type", "precompiled_charsmap"}));
    LOOM_ASSIGN(step.content, node.string("precompiled_charsmap"));
  } else {
    return node.not_supported("type", type);
  }
  return step;
}

}  // namespace

Result<PatternSpec> read_pattern(const Node& node) {
  LOOM_TRY(node.expect_keys({"String", "Regex"}));
  if (node.has("String") == node.has("Regex")) {
    return node.error("expected one of {\"String\": ...} and {\"Regex\": ...}");
  }
  PatternSpec pattern;
  pattern.regex = node.has("Regex");
  const std::string_view key = pattern.regex ? "Regex" : "String";
  LOOM_ASSIGN(pattern.text, node.string(key));
  pattern.where = node.path_of(key);
  return pattern;
}

Result<std::vector<NormalizerStep>> read_normalizer(const Node& node) {
  std::vector<NormalizerStep> steps;
  if (node.value().is_null()) return steps;
  std::vector<Node> parts;
  LOOM_TRY(flatten_sequence(node, "normalizers", parts));
  for (const Node& part : parts) {
    const size_t before = steps.size();
    LOOM_TRY(read_replacements(part, steps));
    if (steps.size() > before) continue;
    LOOM_ASSIGN(NormalizerStep step, read_normal_step(part));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace loom::core::text
