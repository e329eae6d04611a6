// The steps at run time. Splits only make slices finer; only the two rewriting steps rebuild the
// text. Spans and behaviours follow `NormalizedString::split` of HF `tokenizers` step by step.
#include "text/splitting/pretokenizer.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "text/normalizers/byte_alphabet.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {

constexpr std::string_view kGpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// \w+|[^\w\s]+ of Rust's regex crate, where \w includes the joiners.
constexpr std::string_view kWordsOrSymbols = "[\\w\\u200C\\u200D]+|[^\\w\\u200C\\u200D\\s]+";

// Spans of single characters that satisfy `is_match`, and of the text between.
template <class Predicate>
void find_characters(std::string_view text, const Predicate& is_match, std::vector<Span>& spans) {
  size_t covered = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    if (is_match(c.value)) {
      if (covered < at) spans.push_back({covered, at, false});
      covered = at + c.length;
      spans.push_back({at, covered, true});
    }
    at += c.length;
  }
  if (covered < text.size()) spans.push_back({covered, text.size(), false});
}

// Matches white space for removal; words and single marks are between matches.
void find_bert_words(std::string_view text, std::vector<Span>& spans) {
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    const bool space = is_white_space(c.value);
    if (space || is_punctuation(c.value)) {
      if (begin < at) spans.push_back({begin, at, false});
      begin = at + c.length;
      spans.push_back({at, begin, space});
    }
    at += c.length;
  }
  if (begin < text.size()) spans.push_back({begin, text.size(), false});
}

// Each match joins the previous span, unless that is a match too.
void merge_into_previous(std::vector<Span>& spans) {
  size_t kept = 0;
  bool previous = false;
  for (const Span span : spans) {
    if (span.matched && !previous && kept > 0) {
      spans[kept - 1].end = span.end;
    } else {
      spans[kept++] = {span.begin, span.end, false};
    }
    previous = span.matched;
  }
  spans.resize(kept);
}

void merge_into_next(std::vector<Span>& spans) {
  std::reverse(spans.begin(), spans.end());
  size_t kept = 0;
  bool previous = false;
  for (const Span span : spans) {
    if (span.matched && !previous && kept > 0) {
      spans[kept - 1].begin = span.begin;
    } else {
      spans[kept++] = {span.begin, span.end, false};
    }
    previous = span.matched;
  }
  spans.resize(kept);
  std::reverse(spans.begin(), spans.end());
}

void merge_runs(std::vector<Span>& spans) {
  size_t kept = 0;
  bool previous = false;
  for (const Span span : spans) {
    if (span.matched == previous && kept > 0) {
      spans[kept - 1].end = span.end;
    } else {
      spans[kept++] = {span.begin, span.end, false};
    }
    previous = span.matched;
  }
  spans.resize(kept);
}

}  // namespace

Piece slice(const Piece& piece, size_t begin, size_t end) {
  Piece part;
  part.begin = piece.begin + begin;
  part.end = piece.begin + end;
  part.at_zero = begin < piece.from_zero;
  part.from_zero = part.at_zero ? std::min(piece.from_zero, end) - begin : 0;
  return part;
}

// Sets the pattern of kinds that do not name one.
Status PreTokenizer::make_pattern(Step& step) {
  switch (step.kind) {
    case PreTokenizerKind::split: {
      LOOM_ASSIGN(step.pattern, Pattern::make(step.find));
      return {};
    }
    case PreTokenizerKind::words: {
      LOOM_ASSIGN(step.pattern, Pattern::regex(kWordsOrSymbols, step.where));
      step.invert = true;
      step.behavior = SplitBehavior::removed;
      return {};
    }
    case PreTokenizerKind::byte_level: {
      if (!step.splits) return {};
      LOOM_ASSIGN(step.pattern, Pattern::regex(kGpt2Pattern, step.where));
      return {};
    }
    case PreTokenizerKind::bert: step.behavior = SplitBehavior::removed; return {};
    case PreTokenizerKind::metaspace:
      step.pattern = Pattern::literal(step.replacement);
      step.behavior = SplitBehavior::merged_with_next;
      return {};
    default: return {};
  }
}

Result<PreTokenizer> PreTokenizer::make(std::vector<PreTokenizerStep> steps) {
  PreTokenizer result;
  for (PreTokenizerStep& spec : steps) {
    Step step{std::move(spec), {}};
    LOOM_TRY(make_pattern(step));
    result.steps_.push_back(std::move(step));
  }
  return result;
}

Status PreTokenizer::find_spans(const Step& step, std::string_view text, Budget& budget,
                                std::vector<Span>& spans) {
  switch (step.kind) {
    case PreTokenizerKind::digits: find_characters(text, is_numeric, spans); break;
    case PreTokenizerKind::punctuation: find_characters(text, is_punctuation, spans); break;
    case PreTokenizerKind::white_space: find_characters(text, is_white_space, spans); break;
    case PreTokenizerKind::bert: find_bert_words(text, spans); break;
    default: LOOM_TRY(step.pattern.find_all(text, budget, spans)); break;
  }
  if (step.invert) {
    for (Span& span : spans) span.matched = !span.matched;
  }
  return {};
}

// Leaves only text to remove marked as matched.
void PreTokenizer::merge_spans(SplitBehavior behavior, std::vector<Span>& spans) {
  switch (behavior) {
    case SplitBehavior::removed: break;
    case SplitBehavior::isolated:
      for (Span& span : spans) span.matched = false;
      break;
    case SplitBehavior::merged_with_previous: merge_into_previous(spans); break;
    case SplitBehavior::merged_with_next: merge_into_next(spans); break;
    case SplitBehavior::contiguous: merge_runs(spans); break;
  }
}

Status PreTokenizer::split_pieces(const Step& step, PieceList& list, Budget& budget) {
  std::vector<Piece> parts;
  parts.reserve(list.pieces.size());
  std::vector<Span> spans;
  for (const Piece& piece : list.pieces) {
    if (budget.stopped(1 + piece.end - piece.begin)) return Budget::stop_error();
    if (piece.token >= 0) {
      parts.push_back(piece);
      continue;
    }
    spans.clear();
    LOOM_TRY(find_spans(step, list.view(piece), budget, spans));
    merge_spans(step.behavior, spans);
    for (const Span& span : spans) {
      if (!span.matched && span.begin < span.end)
        parts.push_back(slice(piece, span.begin, span.end));
    }
  }
  list.pieces = std::move(parts);
  return {};
}

void PreTokenizer::prefix_spaces(PieceList& list) {
  std::string text;
  text.reserve(list.text.size() + list.pieces.size());
  for (Piece& piece : list.pieces) {
    const std::string_view old = list.view(piece);
    const size_t begin = text.size();
    const bool add = !old.empty() && old[0] != ' ';
    if (add) text += ' ';
    if (add && piece.from_zero > 0) ++piece.from_zero;
    text += old;
    piece.begin = begin;
    piece.end = text.size();
  }
  list.text = std::move(text);
}

void PreTokenizer::map_bytes(PieceList& list) {
  const ByteAlphabet& alphabet = ByteAlphabet::get();
  std::string text;
  text.reserve(list.text.size() + list.text.size() / 4);
  for (Piece& piece : list.pieces) {
    const std::string_view old = list.view(piece);
    const size_t begin = text.size();
    size_t from_zero = 0;
    for (size_t i = 0; i < old.size(); ++i) {
      text += alphabet.character(static_cast<unsigned char>(old[i]));
      if (i + 1 == piece.from_zero) from_zero = text.size() - begin;
    }
    piece.from_zero = from_zero;
    piece.begin = begin;
    piece.end = text.size();
  }
  list.text = std::move(text);
}

void PreTokenizer::mark_spaces(const Step& step, PieceList& list) {
  std::string text;
  text.reserve(list.text.size() + list.text.size() / 4);
  for (Piece& piece : list.pieces) {
    const std::string_view old = list.view(piece);
    const size_t begin = text.size();
    const bool marked =
        old.substr(0, 1) == " " || old.substr(0, step.replacement.size()) == step.replacement;
    const bool adds_prefix = step.prepend == PrependScheme::always ||
                             (step.prepend == PrependScheme::first && piece.at_zero);
    if (adds_prefix && !marked && !old.empty()) text += step.replacement;
    size_t from_zero = 0;
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i] == ' ') {
        text += step.replacement;
      } else {
        text += old[i];
      }
      if (i + 1 == piece.from_zero) from_zero = text.size() - begin;
    }
    piece.from_zero = from_zero;
    piece.begin = begin;
    piece.end = text.size();
  }
  list.text = std::move(text);
}

Status PreTokenizer::apply_step(const Step& step, PieceList& list, Budget& budget) {
  if (budget.stopped(list.text.size())) return Budget::stop_error();
  const bool rewrites =
      step.kind == PreTokenizerKind::metaspace || step.kind == PreTokenizerKind::byte_level;
  // A rewriting step at most triples a byte and adds one mark of four bytes to a piece.
  if (rewrites && !budget.spend_bytes(3 * list.text.size() + 4 * list.pieces.size())) {
    return unsupported("pre-tokenizing makes the text too long", step.where);
  }
  if (step.kind == PreTokenizerKind::metaspace) mark_spaces(step, list);
  if (step.kind == PreTokenizerKind::byte_level && step.prefix_space) prefix_spaces(list);
  if (step.splits) LOOM_TRY(split_pieces(step, list, budget));
  if (step.kind == PreTokenizerKind::byte_level) map_bytes(list);
  return {};
}

Status PreTokenizer::apply(PieceList& list, Budget& budget) const {
  for (const Step& step : steps_) LOOM_TRY(apply_step(step, list, budget));
  return {};
}

}  // namespace loom::core::text
