// Reads the member "decoder". What is not listed in parse_step is refused by name.
#include "text/decoder.hpp"
#include "text/unicode.hpp"

namespace loom::core::text {

Status Decoder::parse_metaspace(const Node& node, Step& step) {
  LOOM_TRY(node.expect_keys(
      {"type", "replacement", "add_prefix_space", "prepend_scheme", "split", "str_rep"}));
  step.kind = Kind::metaspace;
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

Result<Decoder::Step> Decoder::parse_step(const Node& node) {
  LOOM_ASSIGN(const std::string type, node.string("type"));
  Step step;
  step.where = node.where();
  if (type == "ByteLevel") {
    LOOM_TRY(node.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    step.kind = Kind::byte_level;
  } else if (type == "ByteFallback" || type == "Fuse") {
    LOOM_TRY(node.expect_keys({"type"}));
    step.kind = type == "Fuse" ? Kind::fuse : Kind::byte_fallback;
  } else if (type == "Metaspace") {
    LOOM_TRY(parse_metaspace(node, step));
  } else if (type == "Replace") {
    LOOM_TRY(node.expect_keys({"type", "pattern", "content"}));
    step.kind = Kind::replace;
    LOOM_ASSIGN(const Node pattern, node.child("pattern"));
    LOOM_ASSIGN(step.pattern, Pattern::parse(pattern));
    LOOM_ASSIGN(step.content, node.string("content"));
  } else if (type == "Strip") {
    LOOM_TRY(node.expect_keys({"type", "content", "start", "stop"}));
    step.kind = Kind::strip;
    LOOM_ASSIGN(step.character, node.character("content"));
    LOOM_ASSIGN(const int64_t start, node.count("start"));
    LOOM_ASSIGN(const int64_t stop, node.count("stop"));
    step.start = static_cast<size_t>(start);
    step.stop = static_cast<size_t>(stop);
  } else if (type == "WordPiece") {
    LOOM_TRY(node.expect_keys({"type", "prefix", "cleanup"}));
    step.kind = Kind::word_piece;
    LOOM_ASSIGN(step.content, node.string("prefix"));
    LOOM_ASSIGN(step.cleanup, node.boolean("cleanup"));
  } else if (type == "BPEDecoder") {
    LOOM_TRY(node.expect_keys({"type", "suffix"}));
    step.kind = Kind::word_suffix;
    LOOM_ASSIGN(step.content, node.string("suffix"));
    if (step.content.empty()) return node.error_at("suffix", "must not be empty");
  } else {
    return node.not_supported("type", type);
  }
  return step;
}

Result<Decoder> Decoder::parse(const Node& node) {
  Decoder decoder;
  if (node.value().is_null()) {
    decoder.steps_.emplace_back();
    decoder.steps_.back().kind = Kind::join_spaces;
    return decoder;
  }
  std::vector<Node> parts;
  LOOM_TRY(flatten_sequence(node, "decoders", parts));
  bool fused = false;
  for (const Node& part : parts) {
    LOOM_ASSIGN(Step step, parse_step(part));
    step.fused = fused;
    fused = fused || step.kind == Kind::fuse || step.kind == Kind::byte_level;
    decoder.steps_.push_back(std::move(step));
  }
  return decoder;
}

}  // namespace loom::core::text
