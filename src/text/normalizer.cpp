// Steps of the normalizer, each as HF `tokenizers` does it on its NormalizedString.
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

Result<Normalizer> Normalizer::make(std::vector<NormalizerStep> steps) {
  Normalizer normalizer;
  for (NormalizerStep& spec : steps) {
    Step step{std::move(spec), {}};
    if (step.kind == NormalizerKind::replace) {
      LOOM_ASSIGN(step.pattern, Pattern::make(step.find));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

Status Normalizer::apply_step(const Step& step, NormalText& piece, Budget& budget) {
  switch (step.kind) {
    case NormalizerKind::form: to_form(piece, step.form); break;
    case NormalizerKind::lowercase: lowercase(piece); break;
    case NormalizerKind::strip: strip(piece, step.left, step.right); break;
    case NormalizerKind::replace:
      LOOM_TRY(replace(piece, step.pattern, step.content, budget));
      break;
    case NormalizerKind::prepend:
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
