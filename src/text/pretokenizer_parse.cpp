// Reads the member "pre_tokenizer". What is not listed in parse_step is refused by name.
#include "base/text.hpp"
#include "text/pretokenizer.hpp"
#include "text/unicode.hpp"

namespace loom::core::text {
namespace {

constexpr std::string_view kGpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// \w+|[^\w\s]+ of Rust's regex crate, where \w holds the joiners too.
constexpr std::string_view kWordsOrSymbols = "[\\w\\u200C\\u200D]+|[^\\w\\u200C\\u200D\\s]+";

}  // namespace

Result<PreTokenizer::Behavior> PreTokenizer::parse_behavior(const Node& node) {
  static constexpr std::string_view kNames[] = {"Removed", "Isolated", "MergedWithPrevious",
                                                "MergedWithNext", "Contiguous"};
  LOOM_ASSIGN(const std::string name, node.string("behavior"));
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<Behavior>(i);
  }
  return node.not_supported("behavior", name);
}

Status PreTokenizer::parse_split(const Node& node, Step& step) {
  LOOM_TRY(node.expect_keys({"type", "pattern", "behavior", "invert"}));
  LOOM_ASSIGN(const Node pattern, node.child("pattern"));
  LOOM_ASSIGN(step.pattern, Pattern::parse(pattern));
  LOOM_ASSIGN(step.behavior, parse_behavior(node));
  LOOM_ASSIGN(step.invert, node.boolean("invert"));
  return {};
}

Status PreTokenizer::parse_byte_level(const Node& node, Step& step) {
  LOOM_TRY(node.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  step.kind = Kind::byte_level;
  LOOM_ASSIGN(step.prefix_space, node.boolean("add_prefix_space"));
  LOOM_ASSIGN(step.splits, node.boolean_or("use_regex", true));
  if (step.splits) {
    LOOM_ASSIGN(step.pattern, Pattern::regex(kGpt2Pattern, node.where()));
  }
  return {};
}

Status PreTokenizer::parse_metaspace(const Node& node, Step& step) {
  LOOM_TRY(node.expect_keys(
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  step.kind = Kind::metaspace;
  LOOM_ASSIGN(const char32_t replacement, node.character("replacement"));
  step.replacement = utf8(replacement);
  LOOM_ASSIGN(const std::string scheme, node.string_or("prepend_scheme", "always"));
  if (scheme == "always") {
    step.prepend = Prepend::always;
  } else if (scheme == "first") {
    step.prepend = Prepend::first;
  } else if (scheme == "never") {
    step.prepend = Prepend::never;
  } else {
    return node.not_supported("prepend_scheme", scheme);
  }
  LOOM_ASSIGN(const bool prefix, node.boolean_or("add_prefix_space", true));
  if (!prefix && step.prepend != Prepend::never) {
    return node.error_at("add_prefix_space", "false contradicts prepend_scheme");
  }
  LOOM_ASSIGN(step.splits, node.boolean_or("split", true));
  step.pattern = Pattern::literal(step.replacement);
  step.behavior = Behavior::merged_with_next;
  return {};
}

Result<PreTokenizer::Step> PreTokenizer::parse_step(const Node& node) {
  LOOM_ASSIGN(const std::string type, node.string("type"));
  Step step;
  step.where = node.where();
  if (type == "Split") {
    LOOM_TRY(parse_split(node, step));
  } else if (type == "ByteLevel") {
    LOOM_TRY(parse_byte_level(node, step));
  } else if (type == "Metaspace") {
    LOOM_TRY(parse_metaspace(node, step));
  } else if (type == "Digits") {
    LOOM_TRY(node.expect_keys({"type", "individual_digits"}));
    step.kind = Kind::digits;
    LOOM_ASSIGN(const bool individual, node.boolean("individual_digits"));
    step.behavior = individual ? Behavior::isolated : Behavior::contiguous;
  } else if (type == "Punctuation") {
    LOOM_TRY(node.expect_keys({"type", "behavior"}));
    step.kind = Kind::punctuation;
    if (node.has("behavior")) {
      LOOM_ASSIGN(step.behavior, parse_behavior(node));
    }
  } else if (type == "Whitespace") {
    LOOM_TRY(node.expect_keys({"type"}));
    LOOM_ASSIGN(step.pattern, Pattern::regex(kWordsOrSymbols, node.where()));
    step.invert = true;
    step.behavior = Behavior::removed;
  } else if (type == "WhitespaceSplit") {
    LOOM_TRY(node.expect_keys({"type"}));
    step.kind = Kind::white_space;
    step.behavior = Behavior::removed;
  } else {
    return node.not_supported("type", type);
  }
  return step;
}

Result<PreTokenizer> PreTokenizer::parse(const Node& node) {
  PreTokenizer result;
  if (node.value().is_null()) return result;
  std::vector<Node> parts;
  LOOM_TRY(flatten_sequence(node, "pretokenizers", parts));
  for (const Node& part : parts) {
    LOOM_ASSIGN(Step step, parse_step(part));
    result.steps_.push_back(std::move(step));
  }
  return result;
}

}  // namespace loom::core::text
