#include "table/table.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"
#include "table/survey.hpp"
#include "table/text_source.hpp"

namespace loom::core {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kMaxColumns = 100000;
constexpr int64_t kReportRows = 4096;

constexpr std::string_view kKindNames[] = {"number", "boolean", "category",
                                           "date",   "text",    "empty"};

// A pass over the text: cells with the row of the data and the column.
class Pass {
 public:
  Pass(ByteSource& source, const Dialect& dialect)
      : source_(source), scanner_(source, dialect.form), row_(dialect.header ? -2 : -1) {}

  bool next() {
    if (!scanner_.next(cell)) return false;
    row_ += cell.first ? 1 : 0;
    column = cell.first ? 0 : column + 1;
    return true;
  }
  int64_t row() const { return row_; }
  bool of_header() const { return row_ < 0; }
  const Status& status() const { return scanner_.status(); }
  Error error(const std::string& name, std::string_view message) const {
    return bad_file(cat("row ", row_ + 1, ", column '", printable(name), "': ", message),
                    source_.where(), static_cast<int64_t>(cell.offset));
  }

  CsvScanner::Cell cell;
  int64_t column = 0;

 private:
  ByteSource& source_;
  CsvScanner scanner_;
  int64_t row_;
};

// The columns of a file by their first row, and the result of the first pass.
struct Surveyed {
  std::vector<std::string> names;
  std::vector<Survey> surveys;
  int64_t rows = 0;
};

std::string name_of(std::string_view cell, int64_t column) {
  const std::string_view name = trimmed_cell(cell);
  return name.empty() ? cat("column ", column + 1) : std::string(name);
}

Error width_error(const Pass& pass, int64_t cells, int64_t columns, const std::string& where) {
  const bool more = cells > columns;
  const std::string_view remedy = columns == 1 ? "if the separator is another one, give --separator"
                                  : more       ? "put cells that contain the separator in quotes"
                                               : "complete the row, or remove it";
  return bad_file(cat("row ", pass.row() + 1, " has ", more ? "at least " : "", cells,
                      " cells, the first row has ", columns, "; ", remedy),
                  where, static_cast<int64_t>(pass.cell.offset));
}

// Counts rows. surveyed: also the types of all columns.
Result<Surveyed> survey(ByteSource& source, const Dialect& dialect, bool surveyed) {
  Pass pass(source, dialect);
  Surveyed out;
  int64_t columns = 0;
  while (pass.next()) {
    const bool first = pass.row() == (dialect.header ? -1 : 0);
    if (first) {
      if (++columns > kMaxColumns)
        return bad_file(cat("the first row has more than ", kMaxColumns, " cells"), source.where());
      out.names.push_back(name_of(dialect.header ? pass.cell.text : "", pass.column));
      if (surveyed) out.surveys.emplace_back();
    }
    // Rows may end with a separator that the first row does not have.
    const bool trails =
        pass.column == columns && pass.cell.last && trimmed_cell(pass.cell.text).empty();
    if (pass.column >= columns && !trails)
      return width_error(pass, pass.column + 1, columns, source.where());
    if (pass.cell.last && pass.column + 1 < columns)
      return width_error(pass, pass.column + 1, columns, source.where());
    if (surveyed && !pass.of_header() && !trails)
      out.surveys[static_cast<size_t>(pass.column)].add(pass.cell.text, dialect.numbers);
    if (pass.cell.last) out.rows = pass.row() + 1;
  }
  LOOM_TRY(pass.status());
  return out;
}

// Reads the values of the columns that have a type.
class Loader {
 public:
  Loader(const Dialect& dialect, const TableReading& options, Table& table)
      : dialect_(dialect), options_(options), table_(table) {}

  // indices: of the file's columns among those of the table; -1 for others.
  Status read(ByteSource& source, const std::vector<int64_t>& indices, bool tolerant);

 private:
  Status add(const Pass& pass, ColumnData& column, bool tolerant);
  Status add_number(const Pass& pass, ColumnData& column, bool tolerant);
  int32_t code_of(ColumnData& column, std::string_view text);

  const Dialect& dialect_;
  const TableReading& options_;
  Table& table_;
  std::vector<std::unordered_map<std::string, int32_t>> codes_;
};

int32_t Loader::code_of(ColumnData& column, std::string_view text) {
  auto& codes = codes_[static_cast<size_t>(&column - table_.columns.data())];
  const auto found = codes.find(std::string(text));
  if (found != codes.end()) return found->second;
  const auto next = static_cast<int32_t>(column.levels.size());
  codes.emplace(std::string(text), next);
  column.levels.emplace_back(text);
  return next;
}

Status Loader::add_number(const Pass& pass, ColumnData& column, bool tolerant) {
  const std::string_view text = trimmed_cell(pass.cell.text);
  std::optional<double> value;
  if (column.kind == ColumnKind::number) {
    value = number_of_cell(text, dialect_.numbers);
  } else if (column.kind == ColumnKind::date) {
    const std::optional<DateTime> date = date_of_cell(text, column.order);
    if (date) value = date->seconds;
    if (date && column.any_order && !column.ambiguous) {
      const auto other = date_of_cell(text, DateOrder::month_first);
      column.ambiguous = !other || other->seconds != date->seconds;
    }
  } else if (const std::optional<bool> truth = boolean_of_cell(text)) {
    value = *truth ? 1.0 : 0.0;
  } else if (text == "0" || text == "1") {
    value = text == "1" ? 1.0 : 0.0;
  }
  if (!value && !tolerant) {
    constexpr std::string_view kWords = " (true, yes, y, t, on, 1; false, no, n, f, off, 0)";
    return pass.error(column.name,
                      cat("'", printable(text), "' is not a ", column_kind_name(column.kind),
                          column.kind == ColumnKind::boolean ? kWords : std::string_view()));
  }
  if (!value && column.odd++ == 0) column.odd_text = printable(text, 24);
  if (!value) ++column.missing;
  column.values.push_back(value.value_or(kMissing));
  return {};
}

Status Loader::add(const Pass& pass, ColumnData& column, bool tolerant) {
  const std::string_view text = trimmed_cell(pass.cell.text);
  const bool missing = is_missing_cell(text);
  column.missing += missing ? 1 : 0;
  if (column.kind == ColumnKind::category) {
    column.codes.push_back(missing ? -1 : code_of(column, text));
    return {};
  }
  if (!missing) return add_number(pass, column, tolerant);
  column.values.push_back(kMissing);
  return {};
}

Status Loader::read(ByteSource& source, const std::vector<int64_t>& indices, bool tolerant) {
  codes_.resize(table_.columns.size());
  for (size_t i = 0; i < table_.columns.size(); ++i) {
    ColumnData& column = table_.columns[i];
    column.missing = 0;
    if (column.kind != ColumnKind::text) column.odd = 0;
    for (size_t k = 0; k < column.levels.size(); ++k)
      codes_[i].emplace(column.levels[k], static_cast<int32_t>(k));
    column.kind == ColumnKind::category ? column.codes.reserve(static_cast<size_t>(table_.rows))
                                        : column.values.reserve(static_cast<size_t>(table_.rows));
  }
  Pass pass(source, dialect_);
  while (pass.next()) {
    if (pass.of_header() || pass.column >= std::ssize(indices)) continue;
    const int64_t index = indices[static_cast<size_t>(pass.column)];
    if (pass.row() >= table_.rows)
      return bad_file("the file changed while it was read", source.where());
    if (index >= 0) {
      const bool may_skip = tolerant || (!options_.types.empty() &&
                                         options_.types[static_cast<size_t>(index)].tolerant);
      LOOM_TRY(add(pass, table_.columns[static_cast<size_t>(index)], may_skip));
    }
    if (!pass.cell.last || !options_.progress) continue;
    const int64_t done = pass.row() + 1;
    if (done % kReportRows != 0 && done != table_.rows) continue;
    if (!options_.progress(done, table_.rows))
      return make_error(Code::cancelled, "reading the samples was stopped", source.where());
  }
  return pass.status();
}

// The names of a file without a header: those of training, or these without the ones that are not
// read, such as targets in a prediction.
std::vector<std::string> names_by_order(const TableReading& options, size_t columns) {
  if (options.order.size() == columns) return options.order;
  std::vector<std::string> read;
  for (const ColumnType& type : options.types) read.push_back(type.name);
  return read.size() == columns ? read : std::vector<std::string>();
}

// The columns that the file has, by name. Errors: two of one name.
Result<std::vector<int64_t>> indices_of(const std::vector<std::string>& names,
                                        const TableReading& options, bool header,
                                        const std::string& where, Table& table) {
  std::unordered_map<std::string_view, int64_t> by_name;
  for (size_t i = 0; i < options.types.size(); ++i)
    by_name.emplace(options.types[i].name, static_cast<int64_t>(i));
  std::vector<int64_t> out(names.size(), -1);
  std::vector<bool> found(options.types.size(), false);
  std::vector<std::string> extra;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto match = by_name.find(names[i]);
    if (match == by_name.end()) {
      const bool known = std::ranges::find(options.known, names[i]) != options.known.end();
      if (!known) extra.push_back(names[i]);
      continue;
    }
    const auto index = static_cast<size_t>(match->second);
    if (found[index])
      return bad_file(cat("has two columns '", printable(names[i]), "'; rename one"), where);
    found[index] = true;
    out[i] = match->second;
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i]) continue;
    if (options.types[i].optional) {
      table.notes.push_back(cat(where, ": has no column '", printable(options.types[i].name),
                                "' of weights; every sample has weight 1"));
      continue;
    }
    return bad_file(cat("has no column '", printable(options.types[i].name),
                        "', which the network was trained with; ",
                        header ? cat("its columns are ", listed_names(names), "; rename them")
                               : cat("it has no header, and ", names.size(),
                                     " columns; training had ", options.order.size())),
                    where);
  }
  if (!extra.empty())
    table.notes.push_back(
        cat(where, ": columns that the network was not trained with: ", listed_names(extra)));
  return out;
}

Status check_names(const std::vector<std::string>& names, const std::string& where) {
  std::unordered_set<std::string_view> seen;
  for (const std::string& name : names) {
    if (!seen.insert(name).second)
      return bad_file(cat("has two columns '", printable(name), "'; rename one"), where);
  }
  return {};
}

uint64_t bytes_of(const Table& table) {
  uint64_t each = 0;
  for (const ColumnData& c : table.columns)
    each += c.kind == ColumnKind::category ? sizeof(int32_t) : sizeof(double);
  return each * static_cast<uint64_t>(table.rows);
}

bool is_read(ColumnKind kind) {
  return kind != ColumnKind::text && kind != ColumnKind::empty;
}

Result<Dialect> dialect_of(ByteSource& source, const TableReading& options) {
  source.rewind();
  LOOM_ASSIGN(const auto piece, source.next());
  const std::string sample(reinterpret_cast<const char*>(piece.data()), piece.size());
  LOOM_ASSIGN(const auto rest, source.next());
  DialectOptions how = options.dialect;
  for (const ColumnType& type : options.types) how.names.push_back(type.name);
  return find_dialect(sample, rest.empty(), how);
}

void note_order(const ColumnData& column, Table& table) {
  if (column.kind != ColumnKind::date || !column.any_order || !column.ambiguous) return;
  table.notes.push_back(cat(table.path, ": column '", printable(column.name),
                            "': dates begin with the day or the month; the day is taken"));
}

void note_odd(const ColumnData& column, Table& table) {
  if (column.odd == 0 || column.kind == ColumnKind::text) return;
  table.notes.push_back(cat(table.path, ": ", column.odd, " cells of column '",
                            printable(column.name), "' are not a ", column_kind_name(column.kind),
                            ", such as '", column.odd_text, "'; they count as missing"));
}

}  // namespace

std::string_view column_kind_name(ColumnKind kind) {
  return kKindNames[static_cast<size_t>(kind)];
}

Result<ColumnKind> parse_column_kind(std::string_view name, const std::string& where) {
  for (size_t i = 0; i < std::size(kKindNames); ++i) {
    if (kKindNames[i] == name) return static_cast<ColumnKind>(i);
  }
  return bad_file(cat("unknown kind of column '", printable(name), "'"), where);
}

std::string listed_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() == kShown) break;
    shown.push_back(printable(name, 24));
  }
  if (names.size() > kShown) shown.emplace_back("...");
  return join(shown, ", ");
}

int64_t Table::find(std::string_view name) const {
  for (size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return static_cast<int64_t>(i);
  }
  int64_t number = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = code == std::errc() && end == name.data() + name.size();
  return whole && number >= 1 && number <= std::ssize(columns) ? number - 1 : -1;
}

std::vector<std::string> Table::names() const {
  std::vector<std::string> out;
  for (const ColumnData& column : columns) out.push_back(column.name);
  return out;
}

Result<Table> read_table(ByteSource source, const TableReading& options) {
  Table table;
  table.path = source.where();
  LOOM_ASSIGN(source, decode_text(std::move(source), options.dialect.encoding, table.notes));
  LOOM_ASSIGN(const Dialect dialect, dialect_of(source, options));
  const bool planned = !options.types.empty();
  table.numbers = dialect.numbers;
  LOOM_ASSIGN(const Surveyed found, survey(source, dialect, !planned));
  if (found.rows < 1) return bad_file("the dataset is empty: no samples", table.path);
  table.rows = found.rows;
  std::vector<int64_t> indices;
  if (planned) {
    for (const ColumnType& type : options.types) {
      ColumnData& column = table.columns.emplace_back();
      column.name = type.name;
      column.kind = type.kind;
      column.order = type.order;
      column.any_order = type.any_order;
    }
    std::vector<std::string> names = found.names;
    if (!dialect.header || options.by_order) {
      names = names_by_order(options, names.size());
      if (names.empty()) names = found.names;
      if (!options.by_order)
        table.notes.push_back(cat(
            table.path, ": has no header; its columns are taken in order: ", listed_names(names)));
    }
    LOOM_ASSIGN(indices,
                indices_of(names, options, dialect.header && !options.by_order, table.path, table));
  } else {
    LOOM_TRY(check_names(found.names, table.path));
    for (size_t i = 0; i < found.names.size(); ++i) {
      const std::string& name = found.names[i];
      const bool category =
          std::ranges::find(options.categories, name) != options.categories.end() ||
          std::ranges::find(options.categories, cat(i + 1)) != options.categories.end();
      table.columns.push_back(found.surveys[i].column(name, category));
      indices.push_back(is_read(table.columns.back().kind) ? static_cast<int64_t>(i) : -1);
    }
  }
  LOOM_ASSIGN(table.memory, source.memory().take(bytes_of(table), "the columns", table.path));
  Loader loader(dialect, options, table);
  LOOM_TRY(loader.read(source, indices, !planned));
  for (const ColumnData& column : table.columns) {
    note_odd(column, table);
    if (planned) note_order(column, table);
  }
  return table;
}

}  // namespace loom::core
