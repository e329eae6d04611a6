// Reads the root of tokenizer.json into a TokenizerSpec; the members are in the files *_parse.cpp.
// The members "truncation" and "padding" are ignored: they concern callers with batches.
#include "text/tokenizer_json.hpp"

namespace loom::core {
namespace text {

// A member of the root, or null if the file omits it.
static Node member_or_null(const Node& root, std::string_view key) {
  static const JsonValue null{};
  const Result<Node> child = root.child(key);
  return child.ok() ? *child : Node(null, root.where(), std::string(key));
}

Result<AddedTokenSpec> read_added_token(const Node& node) {
  if (!node.value().is_object()) return node.error("expected an object");
  LOOM_TRY(node.expect_keys(
      {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedTokenSpec token;
  LOOM_ASSIGN(token.id, node.token_id("id"));
  LOOM_ASSIGN(token.content, node.string("content"));
  LOOM_ASSIGN(token.single_word, node.boolean("single_word"));
  LOOM_ASSIGN(token.lstrip, node.boolean("lstrip"));
  LOOM_ASSIGN(token.rstrip, node.boolean("rstrip"));
  LOOM_ASSIGN(token.normalized, node.boolean("normalized"));
  LOOM_ASSIGN(token.special, node.boolean("special"));
  return token;
}

static Result<TokenizerSpec> read_root(const Node& root) {
  LOOM_TRY(root.expect_keys({"version", "truncation", "padding", "added_tokens", "normalizer",
                             "pre_tokenizer", "post_processor", "decoder", "model"}));
  LOOM_ASSIGN(const std::string version, root.string_or("version", "1.0"));
  if (version != "1.0") return root.not_supported("version", version);
  TokenizerSpec spec;
  spec.where = root.where();
  LOOM_ASSIGN(const Node model, root.child("model"));
  LOOM_TRY(read_model(model, spec));
  LOOM_ASSIGN(spec.normalizer, read_normalizer(member_or_null(root, "normalizer")));
  LOOM_ASSIGN(spec.pre_tokenizer, read_pre_tokenizer(member_or_null(root, "pre_tokenizer")));
  std::vector<Node> tokens;
  if (root.has_value("added_tokens")) {
    LOOM_ASSIGN(tokens, root.elements("added_tokens"));
  }
  for (const Node& node : tokens) {
    LOOM_ASSIGN(AddedTokenSpec token, read_added_token(node));
    spec.added.push_back(std::move(token));
  }
  LOOM_TRY(read_post_processor(member_or_null(root, "post_processor"), spec));
  LOOM_ASSIGN(spec.decoder, read_decoder(member_or_null(root, "decoder")));
  return spec;
}

}  // namespace text

Result<TokenizerSpec> parse_tokenizer_json(std::string_view json, const std::string& where) {
  LOOM_ASSIGN(const JsonValue value, parse_json(json, where));
  if (value.find("loom") != nullptr && value.find("cells") != nullptr)
    return bad_file("describes a network, not a tokenizer", where);
  return text::read_root(text::Node(value, where, ""));
}

}  // namespace loom::core
