// Steps of the normalizer, as HF `tokenizers` runs them on its NormalizedString.
#include "text/normalizers/normalizer.hpp"

#include <algorithm>

#include "io/bytes/base64.hpp"

namespace loom::core::text {
namespace {

Error too_long() {
  return unsupported("normalizing makes the text too long");
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

bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) ||
         (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

// One pass over the characters: `each` appends the replacement of one.
template <class Each>
void rewrite_characters(NormalText& piece, const Each& each) {
  std::string out;
  out.reserve(piece.text.size() + piece.text.size() / 8);
  size_t from_zero = 0;
  for (size_t at = 0; at < piece.text.size();) {
    const CodePoint c = code_point_at(piece.text, at);
    at += c.length;
    each(c.value, out);
    if (at <= piece.from_zero) from_zero = out.size();
  }
  piece = {std::move(out), from_zero, piece.at_zero};
}

void lowercase(NormalText& piece) {
  rewrite_characters(piece, [](char32_t c, std::string& out) { append_lower(out, c); });
}

void append_clean(char32_t c, std::string& out) {
  if (c == '\t' || c == '\n' || c == '\r') {
    out += ' ';
  } else if (c != 0xFFFD && !is_other(c)) {
    append_utf8(out, is_white_space(c) ? U' ' : c);
  }
}

void append_spaced(char32_t c, std::string& out) {
  const bool spaced = is_ideograph(c);
  if (spaced) out += ' ';
  append_utf8(out, c);
  if (spaced) out += ' ';
}

void append_base(char32_t c, std::string& out) {
  if (!is_nonspacing_mark(c)) append_utf8(out, c);
}

void as_bert(NormalText& piece, const NormalizerStep& step) {
  if (step.clean_text) rewrite_characters(piece, append_clean);
  if (step.spaces_ideographs) rewrite_characters(piece, append_spaced);
  if (step.strips_accents.value_or(step.lowercases)) {
    to_form(piece, NormalForm::nfd);
    rewrite_characters(piece, append_base);
  }
  if (step.lowercases) lowercase(piece);
}

// Maps short clusters as a whole if the map has them, else character by character. Unmapped parts
// of a mapped cluster are lost, as in HF.
Status map_characters(NormalText& piece, const Charsmap& map, Budget& budget) {
  constexpr size_t kShort = 6;
  std::string out;
  size_t from_zero = 0;
  const auto add = [&](size_t end, std::string_view text) {
    out += text;
    if (end <= piece.from_zero) from_zero = out.size();
    return budget.spend_bytes(text.size());
  };
  const std::string_view text = piece.text;
  for (size_t at = 0; at < text.size();) {
    const size_t end = grapheme_end(text, at);
    if (budget.stopped(end - at)) return Budget::stop_error();
    const auto whole = end - at < kShort ? map.find(text.substr(at, end - at)) : std::nullopt;
    if (whole && !add(end, *whole)) return too_long();
    while (!whole && at < end) {
      const std::string_view c = text.substr(at, code_point_at(text, at).length);
      at += c.size();
      if (!add(at, map.find(c).value_or(c))) return too_long();
    }
    at = end;
  }
  piece = {std::move(out), from_zero, piece.at_zero};
  return {};
}

// New content is aligned with the last byte that it replaces.
Status replace(NormalText& piece, const Pattern& pattern, const std::string& content,
               Budget& budget) {
  std::vector<Span> spans;
  LOOM_TRY(pattern.find_all(piece.text, budget, spans));
  std::string out;
  size_t from_zero = 0;
  for (const Span& span : spans) {
    if (budget.stopped(1)) return Budget::stop_error();
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
    Step step{std::move(spec), {}, {}};
    if (step.kind == NormalizerKind::replace) {
      LOOM_ASSIGN(step.pattern, Pattern::make(step.find));
    }
    if (step.kind == NormalizerKind::charsmap) {
      const Result<std::string> bytes = decode_base64(step.content);
      if (!bytes.ok()) return bad_file("precompiled_charsmap is not base64", step.where);
      LOOM_ASSIGN(step.map, Charsmap::parse(*bytes, step.where));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

Status Normalizer::apply_step(const Step& step, NormalText& piece, Budget& budget) {
  if (budget.stopped(piece.text.size())) return Budget::stop_error();
  switch (step.kind) {
    case NormalizerKind::form: to_form(piece, step.form); break;
    case NormalizerKind::lowercase: lowercase(piece); break;
    case NormalizerKind::strip: strip(piece, step.left, step.right); break;
    case NormalizerKind::bert: as_bert(piece, step); break;
    case NormalizerKind::charsmap: LOOM_TRY(map_characters(piece, step.map, budget)); break;
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
