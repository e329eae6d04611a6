#include "io/arrays/csv_scan.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {

char find_csv_separator(std::string_view text) {
  size_t counts[3] = {};
  constexpr char kSeparators[] = {',', ';', '\t'};
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if ((c == '\n' || c == '\r') && !quoted) break;
    for (size_t i = 0; i < 3 && !quoted; ++i) counts[i] += c == kSeparators[i] ? 1 : 0;
  }
  return kSeparators[std::max_element(counts, counts + 3) - counts];
}

// Rows end in \n or \r\n; in files of old Macs, which have no \n, in \r.
static bool has_mac_breaks(std::string_view text) {
  const size_t at = text.find('\r');
  return at != text.npos && at + 1 < text.size() && text.find('\n') == text.npos;
}

CsvScanner::CsvScanner(ByteSource& source, const CsvForm& form) : source_(source), form_(form) {
  source_.rewind();
  stops_[static_cast<unsigned char>(form.separator)] = true;
  if (!at_end() && has_mac_breaks(text_)) break_ = '\r';
  stops_[static_cast<unsigned char>(break_)] = true;
  if (at_end() || !text_.starts_with("\xEF\xBB\xBF")) return;
  pos_ = 3;  // a byte order mark
}

bool CsvScanner::fail(std::string message, uint64_t offset) {
  failed_ = bad_file(std::move(message), source_.where(), static_cast<int64_t>(offset));
  return false;
}

bool CsvScanner::at_end() {
  if (pos_ < text_.size()) return false;
  if (!failed_.ok()) return true;
  base_ += text_.size();
  pos_ = 0;
  text_ = {};
  const auto piece = source_.next();
  if (!piece.ok()) {
    failed_ = piece.error();
    return true;
  }
  text_ = {reinterpret_cast<const char*>(piece->data()), piece->size()};
  return text_.empty();
}

// Reads up to the next separator, line break or the end.
void CsvScanner::plain(Cell& cell) {
  joined_.clear();
  for (;;) {
    const size_t begin = pos_;
    while (pos_ < text_.size() && !stops_[static_cast<unsigned char>(text_[pos_])]) ++pos_;
    cell.text = text_.substr(begin, pos_ - begin);
    if (pos_ < text_.size() && joined_.empty()) break;
    joined_ += cell.text;
    cell.text = joined_;
    if (pos_ < text_.size() || joined_.size() > kMaxField || at_end()) break;
  }
  if (cell.text.ends_with('\r')) cell.text.remove_suffix(1);
}

// Reads from its first quote up to and including its last.
bool CsvScanner::quoted(Cell& cell) {
  joined_.clear();
  ++pos_;
  for (;;) {
    if (at_end()) return fail("a quoted field is never closed", cell.offset);
    const size_t begin = pos_;
    const char escape = form_.backslash ? '\\' : '"';
    while (pos_ < text_.size() && here() != '"' && here() != escape) ++pos_;
    joined_ += text_.substr(begin, pos_ - begin);
    if (joined_.size() > kMaxField) break;
    if (pos_ == text_.size()) continue;
    const bool escaped = here() == '\\';
    ++pos_;
    if (escaped && !at_end()) joined_ += text_[pos_++];
    if (escaped) continue;
    if (at_end() || here() != '"') break;  // not a doubled one
    joined_ += '"';
    ++pos_;
  }
  cell.text = joined_;
  return true;
}

void CsvScanner::skip_comment() {
  while (!at_end() && here() != break_) ++pos_;
}

bool CsvScanner::skip_empty_lines() {
  int64_t lines = 0;
  if (form_.skips_line) skip_comment();
  form_.skips_line = false;
  const auto is_comment = [&] { return form_.comment != '\0' && here() == form_.comment; };
  while (!at_end() && (here() == '\n' || here() == '\r' || is_comment())) {
    if (is_comment()) {
      skip_comment();
      continue;
    }
    if (here() == break_ && ++lines > kMaxEmptyLines)
      return fail(cat("more than ", kMaxEmptyLines, " empty lines one after the other"), offset());
    ++pos_;
  }
  return true;
}

// Reads what separates a field from the next one.
bool CsvScanner::end_field(Cell& cell, bool was_quoted) {
  if (cell.text.size() > kMaxField)
    return fail(cat("a field of more than ", kMaxField, " bytes"), cell.offset);
  if (was_quoted && break_ == '\n' && !at_end() && here() == '\r') {
    ++pos_;
    if (!at_end() && here() != '\n') return fail("text after a closing quote", offset());
  }
  if (at_end()) {
    cell.last = true;
    return true;
  }
  if (here() != form_.separator && here() != break_)
    return fail("text after a closing quote", offset());
  cell.last = here() == break_;
  ++pos_;
  return true;
}

// Fast path: nearly every field is a run of bytes that ends, with its separator, inside the piece.
bool CsvScanner::next(Cell& cell) {
  const char first = pos_ < text_.size() ? text_[pos_] : '"';
  if (first == '"') return next_slowly(cell);
  const bool breaks = first == '\n' || first == '\r' || first == form_.comment;
  if (row_start_ && (breaks || form_.skips_line)) return next_slowly(cell);
  size_t end = pos_;
  while (end < text_.size() && !stops_[static_cast<unsigned char>(text_[end])]) ++end;
  if (end + 1 >= text_.size()) return next_slowly(cell);
  cell.text = text_.substr(pos_, end - pos_);
  if (cell.text.ends_with('\r')) cell.text.remove_suffix(1);
  cell.offset = base_ + pos_;
  cell.first = row_start_;
  cell.last = row_start_ = text_[end] == break_;
  pos_ = end + 1;
  return true;
}

bool CsvScanner::next_slowly(Cell& cell) {
  if (ends_in_separator_) {
    ends_in_separator_ = false;
    cell = {{}, offset(), false, true};
    return true;
  }
  if (row_start_ && !skip_empty_lines()) return false;
  if (at_end()) return false;
  cell.first = row_start_;
  cell.offset = offset();
  const bool is_quoted = here() == '"';
  if (!is_quoted) {
    plain(cell);
  } else if (!quoted(cell)) {
    return false;
  }
  if (!is_quoted && pos_ < text_.size() && cell.text.size() <= kMaxField) {
    cell.last = here() == break_;
    ++pos_;
  } else if (!end_field(cell, is_quoted)) {
    return false;
  }
  row_start_ = cell.last;
  if (!cell.last && pos_ >= text_.size()) {
    // Checks whether this separator is the end of the text. The check loads the next piece, which
    // the view must outlive.
    if (!is_quoted && joined_.empty()) {
      joined_ = cell.text;
      cell.text = joined_;
    }
    ends_in_separator_ = at_end();
  }
  return failed_.ok();
}

}  // namespace loom::core
