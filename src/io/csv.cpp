// See csv.hpp. Cells are views into the text, so a table costs 24 bytes per cell.
#include "io/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace loom {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// False when the cell is no decimal number; "nan" and "inf" are numbers, but not finite ones.
bool parse_number(std::string_view cell, double& out) {
  std::string_view s = trimmed(cell);
  if (s.size() > 1 && s.front() == '+' && s[1] != '-') s.remove_prefix(1);
  const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), out);
  if (code == std::errc::result_out_of_range && end == s.data() + s.size()) out = INFINITY;
  return !s.empty() && end == s.data() + s.size() && code != std::errc::invalid_argument;
}

char find_separator(std::string_view text) {
  size_t counts[3] = {};
  constexpr char kSeparators[] = {',', ';', '\t'};
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == '\n' && !quoted) break;
    for (size_t i = 0; i < 3 && !quoted; ++i) counts[i] += c == kSeparators[i] ? 1 : 0;
  }
  return kSeparators[std::max_element(counts, counts + 3) - counts];
}

}  // namespace

Error CsvTable::error(int64_t row, int64_t col, std::string_view message) const {
  const std::string name =
      header_.empty() ? cat(col + 1) : cat("'", printable(header_[static_cast<size_t>(col)]), "'");
  return bad_file(cat("row ", row + 1, ", column ", name, ": ", message), where_,
                  static_cast<int64_t>(at(row, col).offset));
}

Result<float> CsvTable::number(int64_t row, int64_t col) const {
  double value = 0;
  if (!parse_number(cell(row, col), value)) {
    return error(row, col, cat("'", printable(cell(row, col)), "' is no number"));
  }
  const auto rounded = static_cast<float>(value);
  if (!std::isfinite(rounded)) return error(row, col, "the value is not finite");
  return rounded;
}

bool CsvTable::is_numeric(int64_t col) const {
  double value = 0;
  for (int64_t row = 0; row < rows(); ++row) {
    if (!parse_number(cell(row, col), value)) return false;
  }
  return true;
}

// A field that begins with a quote at `pos`; afterwards `pos` stands behind its last quote.
Result<CsvTable::Cell> CsvTable::quoted(std::string_view text, size_t& pos, char separator) {
  Cell cell;
  cell.offset = pos;
  const size_t first = pos + 1;
  bool doubled = false;
  size_t end = first;
  for (;; ++end) {
    if (end >= text.size())
      return bad_file("a quoted field is never closed", where_, static_cast<int64_t>(cell.offset));
    if (text[end] != '"') continue;
    if (end + 1 >= text.size() || text[end + 1] != '"') break;
    doubled = true;
    ++end;
  }
  pos = end + 1;
  if (pos < text.size() && text[pos] != separator && text[pos] != '\n' && text[pos] != '\r')
    return bad_file("text after a closing quote", where_, static_cast<int64_t>(pos));
  cell.text = text.substr(first, end - first);
  if (doubled) {
    std::string plain;
    for (size_t i = 0; i < cell.text.size(); ++i) {
      plain += cell.text[i];
      if (cell.text[i] == '"') ++i;
    }
    cell.text = unescaped_.emplace_back(std::move(plain));
  }
  return cell;
}

Status CsvTable::read_rows(std::string_view text, size_t pos, char separator) {
  int64_t in_row = 0;
  size_t row_start = pos;
  while (pos < text.size()) {
    if (in_row == 0) {
      row_start = pos;
      if (text[pos] == '\n' || text[pos] == '\r') {  // an empty line
        ++pos;
        continue;
      }
    }
    Cell cell;
    if (text[pos] == '"') {
      LOOM_ASSIGN(cell, quoted(text, pos, separator));
    } else {
      const size_t begin = pos;
      while (pos < text.size() && text[pos] != separator && text[pos] != '\n') ++pos;
      cell.text = text.substr(begin, pos - begin);
      cell.offset = begin;
      if (cell.text.ends_with('\r')) cell.text.remove_suffix(1);
    }
    cells_.push_back(cell);
    ++in_row;
    const bool more = pos < text.size() && text[pos] == separator;
    if (pos < text.size() && text[pos] == '\r') ++pos;
    if (pos < text.size()) ++pos;
    if (more && pos < text.size()) continue;
    if (more) {
      cells_.push_back({{}, pos});  // the text ends in a separator
      ++in_row;
    }
    if (cols_ == 0) cols_ = in_row;
    if (in_row != cols_) {
      return bad_file(cat("a row of ", in_row, " cells, the first row has ", cols_), where_,
                      static_cast<int64_t>(row_start));
    }
    in_row = 0;
  }
  return {};
}

void CsvTable::take_header() {
  if (rows() < 1) return;
  double value = 0;
  bool names = false;
  for (int64_t col = 0; col < cols_; ++col) {
    const bool above = parse_number(cell(0, col), value);
    names = names || (!above && (rows() < 2 || parse_number(cell(1, col), value)));
  }
  if (!names) return;
  for (int64_t col = 0; col < cols_; ++col) header_.emplace_back(cell(0, col));
  cells_.erase(cells_.begin(), cells_.begin() + cols_);
}

Result<CsvTable> CsvTable::parse(std::string_view text, std::string where) {
  CsvTable table;
  table.where_ = std::move(where);
  const size_t begin = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;  // a byte order mark
  LOOM_TRY(table.read_rows(text, begin, find_separator(text.substr(begin))));
  table.take_header();
  return table;
}

}  // namespace loom
