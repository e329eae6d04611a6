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
    LOOM_ASSIGN(NormalizerStep step, read_normal_step(part));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace loom::core::text
