// Reads the member "pre_tokenizer". Steps that are not listed in read_split_step are refused by
// name.
#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"
#include "text/tokenizer_json.hpp"

namespace loom::core::text {
namespace {

Result<SplitBehavior> read_behavior(const Node& node) {
  static constexpr std::string_view kNames[] = {"Removed", "Isolated", "MergedWithPrevious",
                                                "MergedWithNext", "Contiguous"};
  LOOM_ASSIGN(const std::string name, node.string("behavior"));
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<SplitBehavior>(i);
  }
  return node.not_supported("behavior", name);
}

Status read_split(const Node& node, PreTokenizerStep& step) {
  LOOM_TRY(node.expect_keys({"type", "pattern", "behavior", "invert"}));
  LOOM_ASSIGN(const Node pattern, node.child("pattern"));
  LOOM_ASSIGN(step.find, read_pattern(pattern));
  LOOM_ASSIGN(step.behavior, read_behavior(node));
  LOOM_ASSIGN(step.invert, node.boolean("invert"));
  return {};
}

Status read_byte_level(const Node& node, PreTokenizerStep& step) {
  LOOM_TRY(node.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  step.kind = PreTokenizerKind::byte_level;
  LOOM_ASSIGN(step.prefix_space, node.boolean("add_prefix_space"));
  LOOM_ASSIGN(step.splits, node.boolean_or("use_regex", true));
  return {};
}

Status read_metaspace(const Node& node, PreTokenizerStep& step) {
  LOOM_TRY(node.expect_keys(
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  step.kind = PreTokenizerKind::metaspace;
  LOOM_ASSIGN(const char32_t replacement, node.character("replacement"));
  step.replacement = utf8(replacement);
  LOOM_ASSIGN(const std::string scheme, node.string_or("prepend_scheme", "always"));
  if (scheme == "always") {
    step.prepend = PrependScheme::always;
  } else if (scheme == "first") {
    step.prepend = PrependScheme::first;
  } else if (scheme == "never") {
    step.prepend = PrependScheme::never;
  } else {
    return node.not_supported("prepend_scheme", scheme);
  }
  LOOM_ASSIGN(const bool prefix, node.boolean_or("add_prefix_space", true));
  if (!prefix && step.prepend != PrependScheme::never) {
    return node.error_at("add_prefix_space", "false contradicts prepend_scheme");
  }
  LOOM_ASSIGN(step.splits, node.boolean_or("split", true));
  return {};
}

Result<PreTokenizerStep> read_split_step(const Node& node) {
  LOOM_ASSIGN(const std::string type, node.string("type"));
  PreTokenizerStep step;
  step.where = node.where();
  if (type == "Split") {
    LOOM_TRY(read_split(node, step));
  } else if (type == "ByteLevel") {
    LOOM_TRY(read_byte_level(node, step));
  } else if (type == "Metaspace") {
    LOOM_TRY(read_metaspace(node, step));
  } else if (type == "Digits") {
    LOOM_TRY(node.expect_keys({"type", "individual_digits"}));
    step.kind = PreTokenizerKind::digits;
    LOOM_ASSIGN(const bool individual, node.boolean("individual_digits"));
    step.behavior = individual ? SplitBehavior::isolated : SplitBehavior::contiguous;
  } else if (type == "Punctuation") {
    LOOM_TRY(node.expect_keys({"type", "behavior"}));
    step.kind = PreTokenizerKind::punctuation;
    if (node.has("behavior")) {
      LOOM_ASSIGN(step.behavior, read_behavior(node));
    }
  } else if (type == "Whitespace") {
    LOOM_TRY(node.expect_keys({"type"}));
    step.kind = PreTokenizerKind::words;
  } else if (type == "WhitespaceSplit") {
    LOOM_TRY(node.expect_keys({"type"}));
    step.kind = PreTokenizerKind::white_space;
    step.behavior = SplitBehavior::removed;
  } else if (type == "BertPreTokenizer") {
    LOOM_TRY(node.expect_keys({"type"}));
    step.kind = PreTokenizerKind::bert;
  } else {
    return node.not_supported("type", type);
  }
  return step;
}

}  // namespace

Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(const Node& node) {
  std::vector<PreTokenizerStep> steps;
  if (node.value().is_null()) return steps;
  std::vector<Node> parts;
  LOOM_TRY(flatten_sequence(node, "pretokenizers", parts));
  for (const Node& part : parts) {
    LOOM_ASSIGN(PreTokenizerStep step, read_split_step(part));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace loom::core::text
