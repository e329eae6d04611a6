// Reads the member "post_processor". A Sequence may have at most one template: HF feeds the parts
// of the first to the second one by one, which no real file intends.
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

Status read_pieces(const Node& node, std::string_view key, std::vector<TemplatePart>& parts) {
  LOOM_ASSIGN(const std::vector<Node> pieces, node.elements(key));
  if (pieces.size() > kMaxParts) return node.error_at(key, cat("more than ", kMaxParts, " pieces"));
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
    if (inner.has_value("type_id")) {
      LOOM_ASSIGN(part.type, inner.token_id("type_id"));
    }
    const bool known = part.name == "A" || (part.name == "B" && key == "pair");
    if (is_text && !known) return inner.not_supported("id", part.name);
    if (!is_text) LOOM_TRY(read_ids(node, part));
    parts.push_back(std::move(part));
  }
  return {};
}

Status read_template(const Node& node, TokenizerSpec& spec) {
  LOOM_TRY(node.expect_keys({"type", "single", "pair", "special_tokens"}));
  LOOM_TRY(read_pieces(node, "single", *spec.post_processor));
  return node.has_value("pair") ? read_pieces(node, "pair", spec.pair_processor) : Status();
}

// "cls" and "sep" of RobertaProcessing and BertProcessing: ["<s>", 0]
Result<TemplatePart> read_mark(const Node& node, std::string_view key) {
  LOOM_ASSIGN(const std::vector<Node> pair, node.elements(key));
  if (pair.size() != 2) return node.error_at(key, "expected an array of a string and an id");
  LOOM_ASSIGN(const int32_t id, pair[1].as_token_id());
  const std::string& token = pair[0].value().text();
  return TemplatePart{false, token, {{id, token, pair[1].where()}}};
}

// BERT: [CLS] A [SEP] B [SEP], the second of type 1; RoBERTa: <s> A </s></s> B </s>, all of type 0.
Status read_around(const Node& node, bool roberta, TokenizerSpec& spec) {
  LOOM_TRY(node.expect_keys({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
  LOOM_ASSIGN(const TemplatePart cls, read_mark(node, "cls"));
  LOOM_ASSIGN(const TemplatePart sep, read_mark(node, "sep"));
  spec.post_processor = {cls, {true, "A", {}}, sep};
  spec.pair_processor = *spec.post_processor;
  if (roberta) spec.pair_processor.push_back(sep);
  TemplatePart last = sep;
  last.type = roberta ? 0 : 1;
  spec.pair_processor.push_back({true, "B", {}, last.type});
  spec.pair_processor.push_back(std::move(last));
  return {};
}

}  // namespace

Status read_post_processor(const Node& node, TokenizerSpec& spec) {
  if (node.value().is_null()) return {};
  std::vector<Node> steps;
  LOOM_TRY(flatten_sequence(node, "processors", steps));
  for (const Node& step : steps) {
    LOOM_ASSIGN(const std::string type, step.string("type"));
    if (type == "ByteLevel") {
      LOOM_TRY(step.expect_keys({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
      continue;
    }
    const bool is_template = type == "TemplateProcessing", roberta = type == "RobertaProcessing";
    if (!is_template && !roberta && type != "BertProcessing") {
      return step.not_supported("type", type);
    }
    if (spec.post_processor)
      return step.not_supported("type", cat(type, " after another template"));
    spec.post_processor.emplace();
    LOOM_TRY(is_template ? read_template(step, spec) : read_around(step, roberta, spec));
  }
  return {};
}

}  // namespace loom::core::text
