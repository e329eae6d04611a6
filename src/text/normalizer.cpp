// Steps of the normalizer, each as HF `tokenizers` does it on its NormalizedString. What is not
// listed in parse_step is refused by name.
#include "text/normalizer.hpp"

#include <algorithm>

namespace loom::core::text {
namespace {

Error too_long() {
  return unsupported("normalizing makes the text too long");
}

void lowercase(NormalText& piece) {
  std::string out;
  size_t from_zero = 0;
  for (size_t at = 0; at < piece.text.size();) {
    const CodePoint c = code_point_at(piece.text, at);
    at += c.length;
    append_lower(out, c.value);
    if (at <= piece.from_zero) from_zero = out.size();
  }
  piece = {std::move(out), from_zero, piece.at_zero};
}

void strip(NormalText& piece, bool left, bool right) {
  size_t begin = 0, end = piece.text.size();
  while (left && begin < end) {
    const CodePoint c = code_point_at(piece.text, begin);
    if (!is_white_space(c.value)) break;
    begin += c.length;
  }
  while (right && end > begin) {
    const CodePoint c = code_point_before(piece.text, end);
    if (!is_white_space(c.value)) break;
    end -= c.length;
  }
  piece.text = piece.text.substr(begin, end - begin);
  piece.from_zero = piece.from_zero > begin ? piece.from_zero - begin : 0;
}

void to_form(NormalText& piece, NormalForm form) {
  std::string out = normalize(piece.text, form);
  if (piece.from_zero > 0 && out != piece.text) {
    piece.from_zero = out.empty() ? 0 : code_point_at(out, 0).length;
  }
  piece.text = std::move(out);
}

// New content is aligned with the last byte that it replaces.
Status replace(NormalText& piece, const Pattern& pattern, const std::string& content,
               Budget& budget) {
  std::vector<Span> spans;
  LOOM_TRY(pattern.find_all(piece.text, budget, spans));
  std::string out;
  size_t from_zero = 0;
  for (const Span& span : spans) {
    const size_t grows = span.matched ? content.size() : span.end - span.begin;
    if (!budget.spend_bytes(grows)) return too_long();
    if (span.matched) {
      out += content;
      const bool zero = span.end == 0 ? piece.at_zero : span.end <= piece.from_zero;
      if (zero) from_zero = out.size();
    } else {
      const size_t kept = std::min(std::max(piece.from_zero, span.begin), span.end) - span.begin;
      if (kept > 0) from_zero = out.size() + kept;
      out.append(piece.text, span.begin, span.end - span.begin);
    }
  }
  piece = {std::move(out), from_zero, piece.at_zero};
  return {};
}

}  // namespace

Result<Normalizer::Step> Normalizer::parse_step(const Node& node) {
  LOOM_ASSIGN(const std::string type, node.string("type"));
  Step step;
  step.where = node.where();
  static constexpr std::string_view kForms[] = {"NFC", "NFD", "NFKC", "NFKD"};
  for (size_t i = 0; i < std::size(kForms); ++i) {
    if (type != kForms[i]) continue;
    LOOM_TRY(node.expect_keys({"type"}));
    step.form = static_cast<NormalForm>(i);
    return step;
  }
  if (type == "Lowercase") {
    step.kind = Kind::lowercase;
    LOOM_TRY(node.expect_keys({"type"}));
  } else if (type == "Replace") {
    step.kind = Kind::replace;
    LOOM_TRY(node.expect_keys({"type", "pattern", "content"}));
    LOOM_ASSIGN(const Node pattern, node.child("pattern"));
    LOOM_ASSIGN(step.pattern, Pattern::parse(pattern));
    LOOM_ASSIGN(step.content, node.string("content"));
  } else if (type == "Prepend") {
    step.kind = Kind::prepend;
    LOOM_TRY(node.expect_keys({"type", "prepend"}));
    LOOM_ASSIGN(step.content, node.string("prepend"));
  } else if (type == "Strip") {
    step.kind = Kind::strip;
    LOOM_TRY(node.expect_keys({"type", "strip_left", "strip_right"}));
    LOOM_ASSIGN(step.left, node.boolean("strip_left"));
    LOOM_ASSIGN(step.right, node.boolean("strip_right"));
  } else {
    return node.not_supported("type", type);
  }
  return step;
}

Result<Normalizer> Normalizer::parse(const Node& node) {
  Normalizer normalizer;
  if (node.value().is_null()) return normalizer;
  std::vector<Node> parts;
  LOOM_TRY(flatten_sequence(node, "normalizers", parts));
  for (const Node& part : parts) {
    LOOM_ASSIGN(Step step, parse_step(part));
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

Status Normalizer::apply_step(const Step& step, NormalText& piece, Budget& budget) {
  switch (step.kind) {
    case Kind::form: to_form(piece, step.form); break;
    case Kind::lowercase: lowercase(piece); break;
    case Kind::strip: strip(piece, step.left, step.right); break;
    case Kind::replace: LOOM_TRY(replace(piece, step.pattern, step.content, budget)); break;
    case Kind::prepend:
      if (piece.text.empty()) break;
      if (!budget.spend_bytes(piece.text.size() + step.content.size())) return too_long();
      piece.text.insert(0, step.content);
      if (piece.from_zero > 0) piece.from_zero += step.content.size();
      break;
  }
  return {};
}

Status Normalizer::apply(NormalText& piece, Budget& budget) const {
  for (const Step& step : steps_) {
    Status status = apply_step(step, piece, budget);
    if (!status.ok()) {
      Error error = status.error();
      if (error.where.empty()) error.where = step.where;
      return error;
    }
  }
  return {};
}

}  // namespace loom::core::text
