// Reads the member "post_processor". At most one template may stand in a Sequence: HF feeds the
// parts of the first to the second one by one, which no real file means.
#include "base/text.hpp"
#include "text/tokenizer_json.hpp"

namespace loom::core::text {
namespace {

constexpr size_t kMaxParts = 64;

Status read_ids(const Node& node, TemplatePart& part) {
  LOOM_ASSIGN(const Node specials, node.child("special_tokens"));
  if (!specials.value().is_object()) return specials.error("expected an object");
  LOOM_ASSIGN(const Node special, specials.child(part.name));
  LOOM_TRY(special.expect_keys({"id", "ids", "tokens"}));
  LOOM_ASSIGN(const std::vector<Node> list, special.elements("ids"));
  if (list.size() > kMaxParts) return special.error_at("ids", cat("more than ", kMaxParts, " ids"));
  const JsonValue* tokens = special.value().find("tokens");
  for (const Node& element : list) {
    const size_t i = part.ids.size();
    LOOM_ASSIGN(const int32_t id, element.as_token_id());
    const bool named = tokens != nullptr && i < tokens->elements().size();
    part.ids.push_back({id, named ? tokens->elements()[i].text() : part.name, element.where()});
  }
  return {};
}

Status read_template(const Node& node, std::vector<TemplatePart>& parts) {
  LOOM_TRY(node.expect_keys({"type", "single", "pair", "special_tokens"}));
  LOOM_ASSIGN(const std::vector<Node> pieces, node.elements("single"));
  if (pieces.size() > kMaxParts)
    return node.error_at("single", cat("more than ", kMaxParts, " pieces"));
  for (const Node& piece : pieces) {
    LOOM_TRY(piece.expect_keys({"Sequence", "SpecialToken"}));
    const bool is_text = piece.has("Sequence");
    if (is_text == piece.has("SpecialToken")) {
      return piece.error("expected one of {\"Sequence\": ...} and {\"SpecialToken\": ...}");
    }
    LOOM_ASSIGN(const Node inner, piece.child(is_text ? "Sequence" : "SpecialToken"));
    LOOM_TRY(inner.expect_keys({"id", "type_id"}));
    TemplatePart part;
    part.is_text = is_text;
    LOOM_ASSIGN(part.name, inner.string("id"));
    if (is_text && part.name != "A") return inner.not_supported("id", part.name);
    if (!is_text) LOOM_TRY(read_ids(node, part));
    parts.push_back(std::move(part));
  }
  return {};
}

// "cls" and "sep" of RobertaProcessing and BertProcessing: ["<s>", 0]
Status read_around(const Node& node, std::vector<TemplatePart>& parts) {
  LOOM_TRY(node.expect_keys({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
  for (const std::string_view key : {"cls", "sep"}) {
    LOOM_ASSIGN(const std::vector<Node> pair, node.elements(key));
    if (pair.size() != 2) return node.error_at(key, "expected an array of a string and an id");
    LOOM_ASSIGN(const int32_t id, pair[1].as_token_id());
    const std::string& token = pair[0].value().text();
    parts.push_back({false, token, {{id, token, pair[1].where()}}});
    if (key == "cls") parts.push_back({true, "A", {}});
  }
  return {};
}

}  // namespace

Result<std::optional<std::vector<TemplatePart>>> read_post_processor(const Node& node) {
  std::optional<std::vector<TemplatePart>> parts;
  if (node.value().is_null()) return parts;
  std::vector<Node> steps;
  LOOM_TRY(flatten_sequence(node, "processors", steps));
  for (const Node& step : steps) {
    LOOM_ASSIGN(const std::string type, step.string("type"));
    if (type == "ByteLevel") {
      LOOM_TRY(step.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
      continue;
    }
    const bool is_template = type == "TemplateProcessing";
    if (!is_template && type != "RobertaProcessing" && type != "BertProcessing") {
      return step.not_supported("type", type);
    }
    if (parts) return step.not_supported("type", cat(type, " after another template"));
    parts.emplace();
    LOOM_TRY(is_template ? read_template(step, *parts) : read_around(step, *parts));
  }
  return parts;
}

}  // namespace loom::core::text
