// Table: the columns of a text file in memory, each with its type. A first pass over the text
// surveys every column; a second one reads the values. Cells of a column are numbers (also dates,
// as seconds since 1970, and booleans, as 0 and 1) or codes of levels.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "table/dialect.hpp"

namespace loom::core {

// number, boolean, category, date: see Survey::kind(). text: too many different texts to be a
// category. empty: no values.
enum class ColumnKind : uint8_t { number, boolean, category, date, text, empty };
std::string_view column_kind_name(ColumnKind kind);
Result<ColumnKind> parse_column_kind(std::string_view name, const std::string& where);

// Categories with more levels than this are text.
constexpr size_t kMaxLevels = 10000;

struct ColumnData {
  std::string name{};
  ColumnKind kind = ColumnKind::empty;
  DateOrder order = DateOrder::day_first;
  bool integer = false;          // numbers: all of them
  bool counts_up = false;        // integers: each is one more than the one above
  bool unique = false;           // no value is there twice
  int64_t missing = 0;           // cells
  std::string missing_text{};    // the first mark of a missing value; "" if cells are empty
  bool codes_of_digits = false;  // categories: digits that may begin with 0
  bool any_order = false;        // dates that both orders read
  bool ambiguous = false;        // dates whose day may be the month
  bool mixed_order = false;      // texts: dates, some with the day first, some with the month
  ColumnKind almost = ColumnKind::text;  // texts: number or date, if most of them are
  int64_t odd = 0;                    // cells of numbers or dates that are neither; read as missing
  std::string odd_text{};             // the first of them
  std::vector<double> values{};       // number, boolean, date; NaN is missing
  std::vector<int32_t> codes{};       // category: of levels, or -1
  std::vector<std::string> levels{};  // category, boolean: sorted, by value if all are numbers
};

struct Table {
  int64_t rows = 0;
  std::vector<ColumnData> columns{};
  std::string path{};  // for messages
  NumberForm numbers{};
  std::vector<std::string> notes{};
  MemoryShare memory;

  // The index of a column by name, or by its number from 1 if no column has that name; -1 if there
  // is none.
  int64_t find(std::string_view name) const;
  std::vector<std::string> names() const;
};

// A type that a column must have, from a plan. Cells of another type are errors.
struct ColumnType {
  std::string name{};
  ColumnKind kind = ColumnKind::number;
  DateOrder order = DateOrder::day_first;
  bool tolerant = false;   // cells that are neither numbers nor dates are missing
  bool any_order = false;  // dates of training had no order
  bool optional = false;   // the file may lack it
};

struct TableReading {
  DialectOptions dialect{};
  // If empty, all columns, with types that follow from their cells. Otherwise only these columns
  // are read, and found by name; the others are skipped.
  std::vector<ColumnType> types{};
  // With types: all columns of the table of training, in order. A file without a header has those.
  std::vector<std::string> order{};
  bool by_order = false;  // columns are those of `order` even if the file has a header
  // With types: other columns that are skipped without a note.
  std::vector<std::string> known{};
  // Columns whose numbers are levels, such as a target of classes.
  std::vector<std::string> categories{};
  std::function<bool(int64_t done, int64_t total)> progress{};
};

// Errors: bad_file (row and column of a cell, a missing or double column, rows of different
// lengths), out_of_memory, cancelled.
Result<Table> read_table(ByteSource source, const TableReading& options);

// "a, b, c, ..." for messages.
std::string listed_names(const std::vector<std::string>& names);

}  // namespace loom::core
