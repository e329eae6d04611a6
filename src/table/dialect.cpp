#include "table/dialect.hpp"

#include <algorithm>
#include <map>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Row = std::vector<std::string>;
constexpr size_t kSampleRows = 1000;
constexpr char kSeparators[] = {',', ';', '\t', '|'};

// The first rows. If the sample is not the whole text, its last row may be incomplete and is left
// out.
std::vector<Row> rows_of(std::string_view sample, bool whole, const CsvForm& form) {
  ByteSource source = ByteSource::of(std::as_bytes(std::span(sample)), "the sample");
  CsvScanner scanner(source, form);
  CsvScanner::Cell cell;
  std::vector<Row> rows;
  while (rows.size() <= kSampleRows && scanner.next(cell)) {
    if (cell.first) rows.emplace_back();
    rows.back().emplace_back(cell.text);
  }
  if ((!whole || rows.size() > kSampleRows) && rows.size() > 1) rows.pop_back();
  if (!scanner.status().ok() && whole) rows.clear();
  return rows;
}

// How well a separator fits: the share of rows that have the most frequent number of cells, from
// two on; more cells decide between equal shares.
double fit_of(const std::vector<Row>& rows) {
  std::map<size_t, size_t> counts;
  for (const Row& row : rows) ++counts[row.size()];
  double best = 0;
  for (const auto& [cells, count] : counts) {
    if (cells < 2) continue;
    const double share = static_cast<double>(count) / static_cast<double>(rows.size());
    best = std::max(best, share + 1e-3 * static_cast<double>(std::min<size_t>(cells, 100)) / 100);
  }
  return best;
}

Result<char> one_of(const std::string& text, std::string_view what, std::string_view choices) {
  const char c = text == "tab" || text == "\\t" ? '\t' : text.empty() ? '\0' : text[0];
  const bool single = text.size() == 1 || c == '\t';
  if (single &&
      (choices.empty() ? c != '"' && c != '\n' && c != '\r' : choices.find(c) != choices.npos))
    return c;
  return invalid(
      cat("the ", what, " '", printable(text), "' must be ",
          choices.empty() ? std::string("one character, or tab") : cat("one of '", choices, "'")));
}

// Whether a first line that begins with # has as many separators as the second one.
bool is_header(std::string_view sample) {
  const size_t end = sample.find('\n');
  if (end == sample.npos) return false;
  const std::string_view first = sample.substr(0, end);
  const std::string_view second = sample.substr(end + 1, sample.find('\n', end + 1) - end - 1);
  if (second.starts_with('#')) return false;
  return std::ranges::any_of(kSeparators, [&](char c) {
    const auto count = std::ranges::count(first, c);
    return count > 0 && count == std::ranges::count(second, c);
  });
}

void find_form(std::string_view sample, bool whole, bool separator_known, CsvForm& form) {
  form.backslash = sample.find("\\\"") != sample.npos;
  if (sample.starts_with('#') && !is_header(sample)) form.comment = '#';
  if (separator_known) return;
  double best = 0;
  for (const char separator : kSeparators) {
    CsvForm candidate = form;
    candidate.separator = separator;
    const double fit = fit_of(rows_of(sample, whole, candidate));
    if (fit <= best) continue;
    best = fit;
    form.separator = separator;
  }
}

bool is_grouped(std::string_view cell, char mark, char decimal) {
  const NumberForm form{decimal, mark};
  return cell.find(mark) != cell.npos && number_of_cell(cell, form).has_value();
}

// Counts the cells that only one reading allows.
NumberForm find_numbers(const std::vector<Row>& rows, char separator,
                        const std::optional<NumberForm>& usual) {
  size_t commas = 0, points = 0, comma_groups = 0, point_groups = 0, marks[2] = {};
  for (const Row& row : rows) {
    for (const std::string& cell : row) {
      const bool as_point = number_of_cell(cell, {'.', '\0'}).has_value();
      const bool as_comma = number_of_cell(cell, {',', '\0'}).has_value();
      const bool groups_point = is_grouped(cell, '.', ',');
      const bool groups_comma = is_grouped(cell, ',', '.');
      const bool has_comma = cell.find(',') != cell.npos, has_point = cell.find('.') != cell.npos;
      if (has_comma && has_point) {  // 1.234,5 or 1,234.5
        commas += groups_point && !groups_comma ? 1 : 0;
        points += groups_comma && !groups_point ? 1 : 0;
      } else if (has_comma) {
        commas += as_comma && !groups_comma ? 1 : 0;
        points += !as_comma && groups_comma ? 1 : 0;
      } else if (has_point) {
        points += as_point && !groups_point ? 1 : 0;
        commas += !as_point && groups_point ? 1 : 0;
      }
      comma_groups += groups_comma ? 1 : 0;
      point_groups += groups_point ? 1 : 0;
      marks[0] += is_grouped(cell, ' ', '.') || is_grouped(cell, ' ', ',') ? 1 : 0;
      marks[1] += is_grouped(cell, '\'', '.') || is_grouped(cell, '\'', ',') ? 1 : 0;
    }
  }
  NumberForm out;
  const bool open = commas == 0 && points == 0;  // every mark may be either
  if (open && usual) return *usual;
  if (commas > points || (open && comma_groups > 0 && separator != ',')) out.decimal = ',';
  const bool comma = out.decimal == ',';
  // 1.234 alone is a number with three decimals.
  const size_t groups = comma ? (commas > 0 ? point_groups : 0) : comma_groups;
  if (groups > 0)
    out.thousands = comma ? '.' : ',';
  else if (marks[0] > 0)
    out.thousands = ' ';
  else if (marks[1] > 0)
    out.thousands = '\'';
  return out;
}

bool is_value(std::string_view cell, const NumberForm& form) {
  return number_of_cell(cell, form).has_value() ||
         date_of_cell(cell, DateOrder::day_first).has_value() ||
         date_of_cell(cell, DateOrder::month_first).has_value();
}

// A first row is a header if none of its cells is a value. Besides, a column must go on with
// values, or no column may repeat its first cell.
bool find_header(const std::vector<Row>& rows, const NumberForm& form,
                 const std::vector<std::string>& names) {
  if (rows.empty()) return false;
  const Row& first = rows[0];
  const auto named = [&](const std::string& cell) {
    const std::string_view name = trimmed_cell(cell);
    return std::ranges::find(names, name) != names.end() && !is_value(name, form);
  };
  if (std::ranges::any_of(first, named)) return true;
  const auto value = [&](const std::string& cell) { return is_value(cell, form); };
  if (std::ranges::any_of(first, value)) return false;
  bool repeats = false;
  for (size_t column = 0; column < first.size(); ++column) {
    for (size_t row = 1; row < rows.size(); ++row) {
      if (column >= rows[row].size()) continue;
      const std::string& cell = rows[row][column];
      if (is_missing_cell(cell)) continue;
      if (value(cell)) return true;
      repeats = repeats || trimmed_cell(cell) == trimmed_cell(first[column]);
    }
  }
  return !repeats;
}

}  // namespace

Result<Dialect> find_dialect(std::string_view sample, bool whole, const DialectOptions& options) {
  Dialect out;
  if (sample.starts_with("\xEF\xBB\xBF")) sample.remove_prefix(3);
  constexpr std::string_view kSep = "sep=";
  out.form.skips_line = sample.size() > kSep.size() + 1 && sample.starts_with(kSep) &&
                        (sample[kSep.size() + 1] == '\n' || sample[kSep.size() + 1] == '\r');
  if (out.form.skips_line) out.form.separator = sample[kSep.size()];
  const bool separated = !options.separator.empty() || out.form.skips_line;
  if (!options.separator.empty()) {
    LOOM_ASSIGN(out.form.separator, one_of(options.separator, "separator", ""));
  }
  find_form(sample, whole, separated, out.form);
  const std::vector<Row> rows = rows_of(sample, whole, out.form);
  out.numbers = find_numbers(rows, out.form.separator, options.usual);
  if (!options.decimal.empty()) {
    LOOM_ASSIGN(out.numbers.decimal, one_of(options.decimal, "decimal mark", ".,"));
    if (out.numbers.thousands == out.numbers.decimal) out.numbers.thousands = '\0';
  }
  if (options.thousands == "none") {
    out.numbers.thousands = '\0';
  } else if (!options.thousands.empty()) {
    LOOM_ASSIGN(out.numbers.thousands, one_of(options.thousands, "mark of thousands", ".,' "));
  }
  out.header = options.header.value_or(find_header(rows, out.numbers, options.names));
  return out;
}

}  // namespace loom::core
