// Statistics of the rows that train: see plan.hpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "base/text.hpp"
#include "table/plan.hpp"

namespace loom::core {
namespace {

// The values of a column in the rows that train.
std::vector<double> values_of(const ColumnData& column, const std::vector<bool>& trains) {
  std::vector<double> out;
  out.reserve(column.values.size());
  for (size_t i = 0; i < column.values.size(); ++i) {
    if (trains.empty() || trains[i]) out.push_back(column.values[i]);
  }
  return out;
}

// The middle value, or the mean of the two in the middle.
double median_of(std::vector<double> values) {
  std::erase_if(values, is_gap);
  if (values.empty()) return 0;
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// A date of the column: the middle one, or the earlier of two in the middle.
double middle_date(std::vector<double> values) {
  std::erase_if(values, is_gap);
  const auto middle = values.begin() + (std::ssize(values) - 1) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void set_scale(const std::vector<double>& values, TableColumn& out) {
  const auto count = static_cast<double>(values.size());
  if (values.empty()) return;
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  out.deviation = std::sqrt(squares / count);
  // Rounding alone can leave a constant column with a tiny deviation.
  const double least = 1e-12 * std::max(1e-300, std::abs(out.mean));
  if (!(out.deviation > least)) out.deviation = 1;
}

bool is_constant(const std::vector<double>& values) {
  return std::ranges::all_of(values, [&](double v) { return v == values[0]; });
}

// Drops a column that does not vary, or has no value, in the rows that train.
void drop(TableColumn& out, const char* reason) {
  out.role = ColumnRole::dropped;
  out.reason = reason;
}

bool all_missing(const std::vector<double>& values) {
  return std::ranges::all_of(values, is_gap);
}

constexpr const char* kNoValue = "it has no value in the rows that train";

void fit_number(const ColumnData& from, const std::vector<bool>& trains, TableColumn& out) {
  std::vector<double> values = values_of(from, trains);
  if (all_missing(values)) return drop(out, kNoValue);
  out.indicator = std::ranges::any_of(values, is_gap);
  out.fill = median_of(values);
  for (double& value : values) value = is_gap(value) ? out.fill : value;
  set_scale(values, out);
  if (is_constant(values) && !out.indicator) drop(out, "all values are the same");
}

void fit_boolean(const ColumnData& from, const std::vector<bool>& trains, TableColumn& out) {
  const std::vector<double> values = values_of(from, trains);
  if (all_missing(values)) return drop(out, kNoValue);
  out.indicator = std::ranges::any_of(values, is_gap);
  const auto ones = std::ranges::count(values, 1.0), zeros = std::ranges::count(values, 0.0);
  out.fill = ones > zeros ? 1 : 0;
}

void fit_date(const ColumnData& from, const std::vector<bool>& trains, TableColumn& out) {
  std::vector<double> values = values_of(from, trains), years;
  if (all_missing(values)) return drop(out, kNoValue);
  out.indicator = std::ranges::any_of(values, is_gap);
  out.fill = middle_date(values);
  constexpr double kSecondsPerDay = 86400;
  bool times = false, dates = false, days = false;
  std::set<int64_t> months;
  for (const double given : values) {
    const double value = is_gap(given) ? out.fill : given;
    const DateParts parts = parts_of_date(value);
    years.push_back(static_cast<double>(parts.year));
    times = times || parts.hour != 0;
    days = days || parts.day != 1;
    months.insert(parts.month);
    dates = dates || value < 0 || value >= kSecondsPerDay;
  }
  set_scale(years, out);
  if (dates && !is_constant(years)) out.parts |= kYear;
  if (dates && months.size() > 1) out.parts |= kMonth | kDayOfYear;
  if (dates && days) out.parts |= kDay | kWeekday;
  if (times) out.parts |= kHour;
  if (out.parts == 0) drop(out, "all values are the same");
}

// Counts of the levels in the rows that train, and whether a row has none.
std::vector<int64_t> counts_of(const ColumnData& column, const std::vector<bool>& trains,
                               bool& missing) {
  std::vector<int64_t> out(column.levels.size(), 0);
  for (size_t i = 0; i < column.codes.size(); ++i) {
    if (!trains.empty() && !trains[i]) continue;
    const int32_t code = column.codes[i];
    missing = missing || code < 0;
    if (code >= 0) ++out[static_cast<size_t>(code)];
  }
  return out;
}

void fit_category(const ColumnData& from, const std::vector<bool>& trains, int64_t limit,
                  TableColumn& out) {
  const std::vector<int64_t> counts = counts_of(from, trains, out.indicator);
  std::vector<size_t> order;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) order.push_back(i);
  }
  if (order.empty()) return drop(out, kNoValue);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return counts[a] > counts[b]; });
  const auto kept = std::min(order.size(), static_cast<size_t>(limit));
  std::vector<size_t> rare(order.begin() + static_cast<std::ptrdiff_t>(kept), order.end());
  const size_t most = order[0];
  order.resize(kept);
  std::ranges::sort(order);
  std::ranges::sort(rare);
  for (const size_t i : order) {
    if (i == most) out.fill = static_cast<double>(out.levels.size());
    out.levels.push_back(from.levels[i]);
  }
  for (const size_t i : rare) out.rare.push_back(from.levels[i]);
  out.other = !rare.empty();
}

// Classes are those of all rows, so that no row that validates has an unknown one.
void fit_target(const ColumnData& from, const std::vector<bool>& trains, bool scales,
                TableColumn& out) {
  if (out.kind == ColumnKind::number) {
    std::vector<double> values = values_of(from, trains);
    out.fill = median_of(values);
    std::erase_if(values, is_gap);
    if (scales) set_scale(values, out);
    return;
  }
  if (from.kind != ColumnKind::number) {
    out.levels = from.levels;
    return;
  }
  std::set<double> values;
  for (const double value : from.values) {
    if (!is_gap(value)) values.insert(value);
  }
  for (const double value : values) out.levels.push_back(cat(static_cast<int64_t>(value)));
}

// Errors: invalid_argument (values that float32 cannot hold).
Status check_scale(const Table& table, const TableColumn& column) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const bool holds = std::abs(column.mean) < kLargest && column.deviation < kLargest;
  if (holds && std::abs(column.fill) < kLargest) return {};
  return invalid(cat("column '", printable(column.name),
                     "' has values that are too large for float32; drop it, or correct them"),
                 table.path);
}

void note_rare(const Table& table, const TableColumn& column, std::vector<std::string>& notes) {
  if (!column.other) return;
  notes.push_back(cat(table.path, ": column '", printable(column.name), "': the ",
                      column.rare.size(), " rarest levels share one value; --one-hot-limit ",
                      column.levels.size() + column.rare.size(), " gives each its own"));
}

}  // namespace

Status fit_plan(const Table& table, const std::vector<bool>& trains, int64_t one_hot_limit,
                TablePlan& plan, std::vector<std::string>& notes) {
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    TableColumn& out = plan.columns[i];
    const ColumnData& from = table.columns[i];
    if (out.role == ColumnRole::target) {
      fit_target(from, trains, plan.scale_target || plan.window.rows > 0, out);
      if (out.levels.size() == 1)
        return invalid(cat("the target '", printable(out.name), "' is always '",
                           printable(out.levels[0]), "'"),
                       table.path);
      LOOM_TRY(check_scale(table, out));
      if (out.kind == ColumnKind::number && is_constant(values_of(from, trains)))
        notes.push_back(cat(table.path, ": the target '", printable(out.name),
                            "' has one value in all rows that train"));
    }
    if (out.role != ColumnRole::input) continue;
    switch (out.kind) {
      case ColumnKind::number: fit_number(from, trains, out); break;
      case ColumnKind::boolean: fit_boolean(from, trains, out); break;
      case ColumnKind::date: fit_date(from, trains, out); break;
      default: fit_category(from, trains, one_hot_limit, out); break;
    }
    if (out.role == ColumnRole::dropped)
      notes.push_back(
          cat(table.path, ": column '", printable(out.name), "' is not an input: ", out.reason));
    note_rare(table, out, notes);
    LOOM_TRY(check_scale(table, out));
  }
  if (plan.width() > 0) return {};
  std::string why = "has no column that can be an input";
  for (const TableColumn& c : plan.columns) {
    if (c.role == ColumnRole::dropped) why += cat("; '", printable(c.name), "': ", c.reason);
  }
  return invalid(why, table.path);
}

}  // namespace loom::core
