// Reading templates and laying ids out. At most one template may stand in a Sequence: HF feeds the
// parts of the first to the second one by one, which no real file means.
#include "text/postprocessor.hpp"

#include "base/text.hpp"

namespace loom::core::text {
namespace {

constexpr size_t kMaxParts = 64;

Result<int32_t> existing_id(const Node& node, const std::function<bool(int32_t)>& is_token) {
  LOOM_ASSIGN(const int32_t id, node.as_token_id());
  if (!is_token(id)) return node.error(cat("no token has id ", id));
  return id;
}

}  // namespace

Result<std::vector<int32_t>> PostProcessor::special_ids(const Node& node, const std::string& name,
                                                        const Exists& is_token) {
  LOOM_ASSIGN(const Node specials, node.child("special_tokens"));
  if (!specials.value().is_object()) return specials.error("expected an object");
  LOOM_ASSIGN(const Node special, specials.child(name));
  LOOM_TRY(special.expect_keys({"id", "ids", "tokens"}));
  LOOM_ASSIGN(const std::vector<Node> list, special.elements("ids"));
  if (list.size() > kMaxParts) return special.error_at("ids", cat("more than ", kMaxParts, " ids"));
  std::vector<int32_t> ids;
  for (const Node& element : list) {
    LOOM_ASSIGN(const int32_t id, existing_id(element, is_token));
    ids.push_back(id);
  }
  return ids;
}

Status PostProcessor::parse_template(const Node& node, const Exists& is_token) {
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
    LOOM_ASSIGN(const std::string id, inner.string("id"));
    Part part;
    part.is_text = is_text;
    if (is_text && id != "A") return inner.not_supported("id", id);
    if (!is_text) {
      LOOM_ASSIGN(part.ids, special_ids(node, id, is_token));
    }
    parts_.push_back(std::move(part));
  }
  has_template_ = true;
  return {};
}

// "cls" and "sep" of RobertaProcessing and BertProcessing: ["<s>", 0]
Status PostProcessor::parse_pair(const Node& node, const Exists& is_token) {
  LOOM_TRY(node.expect_keys({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
  for (const std::string_view key : {"cls", "sep"}) {
    LOOM_ASSIGN(const std::vector<Node> pair, node.elements(key));
    if (pair.size() != 2) return node.error_at(key, "expected an array of a string and an id");
    LOOM_ASSIGN(const int32_t id, existing_id(pair[1], is_token));
    parts_.push_back({false, {id}});
    if (key == "cls") parts_.push_back({true, {}});
  }
  has_template_ = true;
  return {};
}

Result<PostProcessor> PostProcessor::parse(const Node& node, const Exists& is_token) {
  PostProcessor processor;
  if (node.value().is_null()) return processor;
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
    if (processor.has_template_)
      return step.not_supported("type", cat(type, " after another template"));
    LOOM_TRY(is_template ? processor.parse_template(step, is_token)
                         : processor.parse_pair(step, is_token));
  }
  return processor;
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> text,
                                          bool add_special_tokens) const {
  if (!has_template_) return text;
  std::vector<int32_t> ids;
  ids.reserve(text.size() + parts_.size());
  for (const Part& part : parts_) {
    if (part.is_text) ids.insert(ids.end(), text.begin(), text.end());
    if (!part.is_text && add_special_tokens)
      ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  }
  return ids;
}

}  // namespace loom::core::text
