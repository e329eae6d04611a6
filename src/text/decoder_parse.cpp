// Reads the member "decoder". Parts that are not listed in read_part are refused by name.
#include "text/tokenizer_json.hpp"

namespace loom::core::text {
namespace {

Status read_spaces(const Node& node, DecoderStep& step) {
  LOOM_TRY(node.expect_keys(
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  step.kind = DecoderKind::metaspace;
  LOOM_ASSIGN(step.character, node.character("replacement"));
  LOOM_ASSIGN(const std::string scheme, node.string_or("prepend_scheme", "always"));
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return node.not_supported("prepend_scheme", scheme);
  }
  step.keeps_first = scheme == "never";
  LOOM_ASSIGN(const bool prefix, node.boolean_or("add_prefix_space", true));
  if (!prefix && !step.keeps_first) {
    return node.error_at("add_prefix_space", "false contradicts prepend_scheme");
  }
  return {};
}

Result<DecoderStep> read_part(const Node& node) {
  LOOM_ASSIGN(const std::string type, node.string("type"));
  DecoderStep step;
  step.where = node.where();
  if (type == "ByteLevel") {
    LOOM_TRY(node.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    step.kind = DecoderKind::byte_level;
  } else if (type == "ByteFallback" || type == "Fuse") {
    LOOM_TRY(node.expect_keys({"type"}));
    step.kind = type == "Fuse" ? DecoderKind::fuse : DecoderKind::byte_fallback;
  } else if (type == "Metaspace") {
    LOOM_TRY(read_spaces(node, step));
  } else if (type == "Replace") {
    LOOM_TRY(node.expect_keys({"type", "pattern", "content"}));
    step.kind = DecoderKind::replace;
    LOOM_ASSIGN(const Node pattern, node.child("pattern"));
    LOOM_ASSIGN(step.find, read_pattern(pattern));
    LOOM_ASSIGN(step.content, node.string("content"));
  } else if (type == "Strip") {
    LOOM_TRY(node.expect_keys({"type", "content", "start", "stop"}));
    step.kind = DecoderKind::strip;
    LOOM_ASSIGN(step.character, node.character("content"));
    LOOM_ASSIGN(const int64_t start, node.count("start"));
    LOOM_ASSIGN(const int64_t stop, node.count("stop"));
    step.start = static_cast<size_t>(start);
    step.stop = static_cast<size_t>(stop);
  } else if (type == "WordPiece") {
    LOOM_TRY(node.expect_keys({"type", "prefix", "cleanup"}));
    step.kind = DecoderKind::word_piece;
    LOOM_ASSIGN(step.content, node.string("prefix"));
    LOOM_ASSIGN(step.cleanup, node.boolean("cleanup"));
  } else if (type == "BPEDecoder") {
    LOOM_TRY(node.expect_keys({"type", "suffix"}));
    step.kind = DecoderKind::word_suffix;
    LOOM_ASSIGN(step.content, node.string("suffix"));
    if (step.content.empty()) return node.error_at("suffix", "must not be empty");
  } else {
    return node.not_supported("type", type);
  }
  return step;
}

}  // namespace

Result<std::vector<DecoderStep>> read_decoder(const Node& node) {
  std::vector<DecoderStep> steps;
  if (node.value().is_null()) {
    steps.emplace_back();
    steps.back().kind = DecoderKind::join_spaces;
    return steps;
  }
  std::vector<Node> parts;
  LOOM_TRY(flatten_sequence(node, "decoders", parts));
  for (const Node& part : parts) {
    LOOM_ASSIGN(DecoderStep step, read_part(part));
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace loom::core::text
