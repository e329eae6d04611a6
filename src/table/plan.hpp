// TablePlan: how the columns of a table become inputs and targets of a network. It is made from the
// rows that train, stored with the network, and applied to every later table by column names.
//
//   number    (x - mean) / deviation; a gap is filled with the median first
//   boolean   0 or 1; a gap is the more frequent one
//   category  one value per level, of which one is 1; a gap is the most frequent level, an unknown
//             level is all zeros. Above the limit of levels the rarest share one value.
//   date      the year like a number; month, day, weekday, hour, day of year as sine and cosine;
//             a gap is the middle date, or the earlier of two in the middle
//
// A column with gaps has one more value, 1 where there was one. Means, deviations, medians and
// counts are those of scikit-learn's StandardScaler, SimpleImputer and OneHotEncoder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/json/json.hpp"
#include "table/table.hpp"

namespace loom::core {

enum class ColumnRole : uint8_t { input, target, weight, dropped };

// Bits of TableColumn::parts.
enum DatePart : uint8_t {
  kYear = 1,
  kMonth = 2,
  kDay = 4,
  kWeekday = 8,
  kHour = 16,
  kDayOfYear = 32,
};

struct TableColumn {
  std::string name{};
  ColumnRole role = ColumnRole::input;
  ColumnKind kind = ColumnKind::number;
  bool integer = false;
  bool tolerant = false;   // cells of another type are gaps
  bool indicator = false;  // a value for gaps
  double fill = 0;         // number, boolean, date in seconds; category: the index of a level
  double mean = 0, deviation = 1;     // of numbers, of the years of dates, of numeric targets
  std::vector<std::string> levels{};  // of inputs in order; of a target the names of its classes
  bool other = false;                 // one more value for rare levels
  std::vector<std::string> rare{};    // those levels
  uint8_t parts = 0;                  // of dates
  DateOrder order = DateOrder::day_first;
  bool any_order = false;  // no date of the rows says which order
  std::string reason{};    // why it was dropped

  int64_t width() const;  // values of one row
};

struct WindowSpec {
  int64_t rows = 0;  // 0 means that each row is a sample
  int64_t horizon = 1, stride = 1;
};

struct PlanOptions {
  std::vector<std::string> target{};   // empty means the last column
  std::vector<std::string> drop{};     // columns that are not inputs
  std::vector<std::string> columns{};  // the only inputs; empty means all
  std::string weights{};               // a column of sample weights
  int64_t one_hot_limit = 100;         // levels with a value of their own
  bool numbers = false;                // integer targets are numbers, never classes
  bool scale_target = true;            // numeric targets are standardized in training
  WindowSpec window{};
};

// Which rows the statistics are of, as learn/data/split.hpp draws them.
struct PlanSplit {
  double share = 0;  // 0 means all rows
  uint64_t seed = 1;
  bool shuffle = true;

  bool operator==(const PlanSplit&) const = default;
};

struct TablePlan {
  std::vector<TableColumn> columns{};  // in the order of the table
  WindowSpec window{};
  bool scale_target = false;
  NumberForm numbers{};  // of the table
  PlanSplit split{};

  bool has_classes() const;
  std::vector<std::string> classes() const;
  std::vector<std::string> inputs() const;   // names of columns
  std::vector<std::string> targets() const;  // names of columns
  int64_t width() const;                     // input values of one row
  int64_t outputs() const;                   // of a network: numeric targets, or classes
  // "8 columns: 5 numbers, 2 categories (3, 41 levels), 1 date; target price, a number".
  std::string describe() const;
};

// The role and kind of every column. Levels, means and fills are those of fit_plan(). Notes say
// which columns are dropped, and why. Errors: invalid_argument (no such column, no input, targets
// of different kinds); a numeric column of many different texts as the target.
Result<TablePlan> roles_of(const Table& table, const PlanOptions& options,
                           std::vector<std::string>& notes);
// Fits the plan to the rows of `trains`, one flag per row of the table; empty means all rows.
Status fit_plan(const Table& table, const std::vector<bool>& trains, int64_t one_hot_limit,
                TablePlan& plan, std::vector<std::string>& notes);

// The columns that a table must have for the plan; targets are optional.
std::vector<ColumnType> types_of(const TablePlan& plan, bool with_targets);

JsonValue plan_json(const TablePlan& plan);
Result<TablePlan> read_plan(const JsonValue& json, const std::string& where);

}  // namespace loom::core
