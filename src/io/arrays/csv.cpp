#include "io/arrays/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "io/arrays/csv_scan.hpp"

namespace loom::core {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// False if the cell is not a decimal number. "nan" and "inf" are numbers, but not finite ones.
bool parse_number(std::string_view cell, double& out) {
  std::string_view s = trimmed(cell);
  if (s.size() > 1 && s.front() == '+' && s[1] != '-') s.remove_prefix(1);
  const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), out);
  if (code == std::errc::result_out_of_range && end == s.data() + s.size()) out = INFINITY;
  return !s.empty() && end == s.data() + s.size() && code != std::errc::invalid_argument;
}

bool is_number(std::string_view cell) {
  // A fast path for integers.
  if (!cell.empty() && cell.find_first_not_of("0123456789") == std::string_view::npos) return true;
  double value = 0;
  return parse_number(cell, value);
}

Error row_error(const std::string& where, int64_t cells, int64_t cols, bool more, uint64_t offset) {
  return bad_file(
      cat("a row of ", more ? "more than " : "", cells, " cells, the first row has ", cols), where,
      static_cast<int64_t>(offset));
}

}  // namespace

// The results of the first pass.
struct CsvFile::Survey {
  enum class Below : uint8_t { unknown, number, text };
  struct First {
    std::string text;
    uint64_t offset = 0;
    bool number = false;
    Below below = Below::unknown;  // the first cell under it that is not empty
    bool empty() const { return trimmed(text).empty(); }
  };
  std::vector<First> first;        // row
  uint64_t first_bytes = 0;        // bytes of `first`
  int64_t rows = 0;                // with the first
  bool last_below_numeric = true;  // of the cells below the first row
  bool next_to_last_numeric = true;
  bool last_empty = true;  // every cell of the last column

  Status add_first(const CsvScanner::Cell& cell, const ByteSource& source);
  void add(const CsvScanner::Cell& cell, int64_t col);
  Result<bool> has_header(const std::string& where) const;
  bool ends_in_separators(int64_t max_cols) const;
};

// Whether the last column is only what follows a separator at the end of each row. Cells of data
// may be empty too (the end of a sequence). So the first row must have a name for all other
// columns, or one cell more than expected.
bool CsvFile::Survey::ends_in_separators(int64_t max_cols) const {
  if (first.size() < 2 || !first.back().empty() || !last_empty) return false;
  if (static_cast<int64_t>(first.size()) > max_cols) return true;
  return std::all_of(first.begin(), first.end() - 1,
                     [](const First& f) { return !f.number && !f.empty(); });
}

Status CsvFile::Survey::add_first(const CsvScanner::Cell& cell, const ByteSource& source) {
  // A growing vector holds its elements up to three times.
  first_bytes += 3 * sizeof(First) + cell.text.size();
  LOOM_TRY(source.memory().check(first_bytes, "the first row", source.where()));
  first.push_back({std::string(cell.text), cell.offset, is_number(cell.text)});
  return {};
}

void CsvFile::Survey::add(const CsvScanner::Cell& cell, int64_t col) {
  First& above = first[static_cast<size_t>(col)];
  const bool last = col + 1 == static_cast<int64_t>(first.size());
  const bool open = above.below == Below::unknown && !above.number;
  if (last) last_empty = last_empty && trimmed(cell.text).empty();
  const bool next_to_last = col + 2 == static_cast<int64_t>(first.size()) && last_empty;
  if (!open && !(last && last_below_numeric) && !(next_to_last && next_to_last_numeric)) return;
  const bool number = is_number(cell.text);
  if (next_to_last) next_to_last_numeric = next_to_last_numeric && number;
  if (last) last_below_numeric = last_below_numeric && number;
  if (open && !trimmed(cell.text).empty()) above.below = number ? Below::number : Below::text;
}

Result<bool> CsvFile::Survey::has_header(const std::string& where) const {
  const First* odd = nullptr;  // a text above a number, or an empty cell
  bool names = rows == 1, numbers = false;
  for (const First& f : first) {
    numbers = numbers || f.number;
    names = names || f.below == Below::number;
    const bool is_odd = !f.number && (f.empty() || f.below == Below::number);
    if (is_odd && odd == nullptr) odd = &f;
  }
  if (!numbers) return names && !first.empty();
  if (odd == nullptr) return false;
  return bad_file(
      cat("row 1, column ", odd - first.data() + 1, ": ",
          odd->empty() ? std::string("an empty field") : cat("'", printable(odd->text), "'"),
          " among numbers; say with --header yes or --header no whether this row is a header"),
      where, static_cast<int64_t>(odd->offset));
}

// Scans the whole text once.
Status CsvFile::survey(int64_t max_cols, CsvHeader header) {
  const std::string& where = source_.where();
  Survey found;
  CsvScanner scanner(source_, {.separator = separator_});
  CsvScanner::Cell cell;
  int64_t col = 0;
  uint64_t row_offset = 0;
  while (scanner.next(cell)) {
    if (cell.first) {
      col = 0;
      row_offset = cell.offset;
    }
    if (found.rows == 0) {
      const bool may_trail = col == max_cols && cell.last && trimmed(cell.text).empty();
      if (col >= max_cols && !may_trail) {
        cols_ = col + 1;
        return {};
      }
      LOOM_TRY(found.add_first(cell, source_));
    } else if (col == cols_) {
      return row_error(where, cols_, cols_, true, row_offset);
    } else {
      found.add(cell, col);
    }
    ++col;
    if (!cell.last) continue;
    if (++found.rows == 1) cols_ = col;
    if (col != cols_) return row_error(where, col, cols_, false, row_offset);
    const uint64_t values = static_cast<uint64_t>(found.rows) * static_cast<uint64_t>(cols_) * 4;
    if (values > source_.memory().left())
      return source_.memory().error(values, "the values", where);
  }
  LOOM_TRY(scanner.status());
  if (found.ends_in_separators(max_cols)) {
    trailing_ = true;
    found.first.pop_back();
    --cols_;
    found.last_below_numeric = found.next_to_last_numeric;
  }
  bool takes = header == CsvHeader::yes && found.rows > 0;
  if (header == CsvHeader::automatic) {
    LOOM_ASSIGN(takes, found.has_header(where));
  }
  rows_ = found.rows - (takes ? 1 : 0);
  last_is_numeric_ =
      found.last_below_numeric && (takes || found.first.empty() || found.first.back().number);
  for (size_t i = 0; takes && i < found.first.size(); ++i)
    header_.push_back(std::move(found.first[i].text));
  return {};
}

Result<CsvFile> CsvFile::open(ByteSource source, int64_t max_cols, CsvHeader header) {
  CsvFile file;
  file.source_ = std::move(source);
  file.source_.rewind();
  LOOM_ASSIGN(const auto piece, file.source_.next());
  const std::string_view text(reinterpret_cast<const char*>(piece.data()), piece.size());
  const size_t mark = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  file.separator_ = find_csv_separator(text.substr(mark));
  LOOM_TRY(file.survey(max_cols, header));
  return file;
}

Status CsvFile::read(const Use& use) {
  CsvScanner scanner(source_, {.separator = separator_});
  CsvScanner::Cell cell;
  CsvCell out;
  out.row = header_.empty() ? -1 : -2;
  while (scanner.next(cell)) {
    out.row += cell.first ? 1 : 0;
    out.col = cell.first ? 0 : out.col + 1;
    if (out.row < 0) continue;
    if (trailing_ && out.col == cols_ && cell.last) continue;
    // The first pass saw rows() rows of cols() cells. A file that changes meanwhile must be
    // rejected.
    if (out.row >= rows_ || out.col >= cols_)
      return bad_file("the file changed while it was read", source_.where());
    out.text = cell.text;
    out.offset = cell.offset;
    LOOM_TRY(use(out));
  }
  return scanner.status();
}

Error CsvFile::error(const CsvCell& cell, std::string_view message) const {
  const std::string name = header_.empty()
                               ? cat(cell.col + 1)
                               : cat("'", printable(header_[static_cast<size_t>(cell.col)]), "'");
  return bad_file(cat("row ", cell.row + 1, ", column ", name, ": ", message), source_.where(),
                  static_cast<int64_t>(cell.offset));
}

Result<float> CsvFile::number(const CsvCell& cell) const {
  double value = 0;
  if (!parse_number(cell.text, value))
    return error(cell, cat("'", printable(cell.text), "' is not a number"));
  const auto rounded = static_cast<float>(value);
  if (!std::isfinite(rounded)) return error(cell, "the value is not finite");
  return rounded;
}

}  // namespace loom::core
