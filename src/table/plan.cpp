#include "table/plan.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {
namespace {

// Integer targets of at most so many values that begin at 0 or 1 and leave none out are classes.
constexpr size_t kMaxIntegerClasses = 20;

Result<int64_t> column_of(const Table& table, const std::string& name, std::string_view what) {
  int64_t index = table.find(name);
  if (index < 0) index = table.find(trimmed_cell(name));  // of a list with spaces
  if (index >= 0) return index;
  return invalid(cat("has no column '", printable(name), "' for ", what, "; its columns are ",
                     listed_names(table.names())),
                 table.path);
}

TableColumn start_of(const ColumnData& from) {
  TableColumn out;
  out.name = from.name;
  out.kind = from.kind;
  out.integer = from.integer;
  out.order = from.order;
  out.any_order = from.any_order;
  out.tolerant = from.odd > 0;
  return out;
}

bool names_an_id(std::string_view name) {
  const std::string lower = to_lower_ascii(name);
  return lower == "id" || lower == "index" || lower == "unnamed: 0" || lower.ends_with("_id") ||
         lower.ends_with(" id") || (name.size() > 2 && name.ends_with("Id"));
}

// Whether a column numbers the rows from 0 or 1.
bool numbers_rows(const ColumnData& column) {
  return column.counts_up && (column.values[0] == 0 || column.values[0] == 1);
}

// Why a column has no type.
std::string reason_of_text(const ColumnData& column) {
  if (column.mixed_order) return "the day is first in some of its dates, the month in others";
  if (column.almost == ColumnKind::text)
    return cat("nearly every text in it is another, such as '", printable(column.odd_text, 24),
               "'");
  return cat(column.odd, column.odd == 1 ? " cell is not a " : " cells are not a ",
             column_kind_name(column.almost), ", such as '", printable(column.odd_text, 24), "'");
}

// Why a column cannot be an input; empty if it can. first: the first column of the table.
std::string reason_to_drop(const ColumnData& column, bool first) {
  if (column.kind == ColumnKind::empty) return "it is empty";
  if (column.kind == ColumnKind::text) return reason_of_text(column);
  if (column.kind == ColumnKind::category && column.levels.size() == 1 && column.missing == 0)
    return "all values are the same";
  if (first && numbers_rows(column)) return "it numbers the rows";
  if (column.integer && column.unique && names_an_id(column.name)) return "it looks like an id";
  return {};
}

// Whether the integers of a target are classes: 0 or 1 and on, each of them there.
bool are_classes(const ColumnData& column) {
  if (!column.integer || column.missing == std::ssize(column.values)) return false;
  std::vector<double> values;
  for (const double value : column.values) {
    if (value != value || std::ranges::find(values, value) != values.end()) continue;
    values.push_back(value);
    if (values.size() > kMaxIntegerClasses) return false;
  }
  const auto [least, largest] = std::ranges::minmax(values);
  const auto present = column.values.size() - static_cast<size_t>(column.missing);
  constexpr size_t kSmallTable = 10;
  if (present >= kSmallTable && 2 * values.size() > present)
    return false;  // nearly all are different
  return values.size() > 1 && (least == 0 || least == 1) &&
         largest - least + 1 == static_cast<double>(values.size());
}

Status set_target(const Table& table, const ColumnData& from, bool numbers, TableColumn& out) {
  out.role = ColumnRole::target;
  switch (from.kind) {
    case ColumnKind::number:
      if (!numbers && are_classes(from)) out.kind = ColumnKind::category;
      return {};
    case ColumnKind::category:
    case ColumnKind::boolean: out.kind = ColumnKind::category; return {};
    case ColumnKind::date:
      return invalid(cat("the target '", printable(from.name),
                         "' is a date; name a column of numbers or classes"),
                     table.path);
    default: break;
  }
  if (from.kind == ColumnKind::empty)
    return invalid(cat("the target '", printable(from.name), "' is empty"), table.path);
  if (from.almost == ColumnKind::text)
    return invalid(cat("the target '", printable(from.name),
                       "' has too many different texts to be classes; if they are numbers, give "
                       "--decimal or --separator"),
                   table.path);
  return invalid(cat("the target '", printable(from.name), "': ", reason_of_text(from),
                     "; correct or empty ", from.odd == 1 ? "it" : "them"),
                 table.path);
}

Status check_targets(const Table& table, const TablePlan& plan) {
  int64_t numbers = 0, classes = 0;
  for (const TableColumn& c : plan.columns) {
    if (c.role != ColumnRole::target) continue;
    (c.kind == ColumnKind::category ? classes : numbers) += 1;
  }
  if (classes == 0 || (classes == 1 && numbers == 0)) return {};
  return invalid("several targets must all be numbers; train a network for each class", table.path);
}

struct Names {
  std::vector<int64_t> target, drop, columns;
  int64_t weights = -1;
};

Result<std::vector<int64_t>> all_of(const Table& table, const std::vector<std::string>& names,
                                    std::string_view what) {
  std::vector<int64_t> out;
  for (const std::string& name : names) {
    LOOM_ASSIGN(const int64_t index, column_of(table, name, what));
    out.push_back(index);
  }
  return out;
}

Result<Names> resolve(const Table& table, const PlanOptions& options) {
  Names out;
  LOOM_ASSIGN(out.target, all_of(table, options.target, "the target"));
  LOOM_ASSIGN(out.drop, all_of(table, options.drop, "--drop"));
  LOOM_ASSIGN(out.columns, all_of(table, options.columns, "--columns"));
  if (out.target.empty()) out.target.push_back(std::ssize(table.columns) - 1);
  for (const int64_t index : out.target) {
    const std::string name = printable(table.columns[static_cast<size_t>(index)].name);
    if (std::ranges::count(out.target, index) > 1)
      return invalid(cat("the target '", name, "' is given twice"), table.path);
    for (const auto* others : {&out.drop, &out.columns}) {
      if (std::ranges::find(*others, index) != others->end())
        return invalid(cat("'", name, "' is the target, so it cannot be in --",
                           others == &out.drop ? "drop" : "columns"),
                       table.path);
    }
  }
  if (options.weights.empty()) return out;
  LOOM_ASSIGN(out.weights, column_of(table, options.weights, "the weights"));
  return out;
}

bool has(const std::vector<int64_t>& list, int64_t index) {
  return std::ranges::find(list, index) != list.end();
}

std::string plural(int64_t count, std::string_view one, std::string_view several) {
  return cat(count, " ", count == 1 ? one : several);
}

std::string levels_text(const std::vector<int64_t>& counts) {
  constexpr size_t kShown = 6;
  std::vector<std::string> shown;
  for (size_t i = 0; i < counts.size() && i < kShown; ++i) shown.push_back(cat(counts[i]));
  if (counts.size() > kShown) shown.emplace_back("...");
  return cat(" (", join(shown, ", "), counts == std::vector<int64_t>{1} ? " level)" : " levels)");
}

std::string target_text(const TablePlan& plan) {
  const std::vector<std::string> names = plan.targets();
  const std::string listed = listed_names(names);
  if (plan.has_classes()) return cat("target ", listed, ", ", plan.classes().size(), " classes");
  return names.size() == 1 ? cat("target ", listed, ", a number")
                           : cat("targets ", listed, ", numbers");
}

// Guesses that change numbers.
void note_guesses(const Table& table, const ColumnData& column, std::vector<std::string>& notes) {
  const std::string name = cat(table.path, ": column '", printable(column.name), "': ");
  if (column.kind == ColumnKind::date && column.ambiguous)
    notes.push_back(cat(name, "dates begin with the day or the month; the day is taken"));
  if (column.kind == ColumnKind::category && column.codes_of_digits)
    notes.push_back(cat(name, "digits that begin with 0 are categories, not numbers"));
}

// The columns that miss values.
void note_gaps(const Table& table, const TablePlan& plan, std::vector<std::string>& notes) {
  std::vector<std::string> gaps;
  for (size_t i = 0; i < plan.columns.size(); ++i) {
    const ColumnData& from = table.columns[i];
    if (plan.columns[i].role != ColumnRole::input || from.missing == 0) continue;
    gaps.push_back(cat("'", printable(from.name, 24), "' ", from.missing));
    if (!from.missing_text.empty()) gaps.back() += cat(" (", printable(from.missing_text), ")");
  }
  if (gaps.empty()) return;
  constexpr size_t kShown = 8;
  const size_t all = gaps.size();
  if (all > kShown) gaps.resize(kShown);
  notes.push_back(cat(table.path, ": cells without a value of ", table.rows, ": ", join(gaps, ", "),
                      all > kShown ? ", ..." : ""));
}

}  // namespace

bool TablePlan::has_classes() const {
  return std::ranges::any_of(columns, [](const TableColumn& c) {
    return c.role == ColumnRole::target && c.kind == ColumnKind::category;
  });
}

std::vector<std::string> TablePlan::classes() const {
  for (const TableColumn& c : columns) {
    if (c.role == ColumnRole::target && c.kind == ColumnKind::category) return c.levels;
  }
  return {};
}

static std::vector<std::string> names_in(const TablePlan& plan, ColumnRole role) {
  std::vector<std::string> out;
  for (const TableColumn& c : plan.columns) {
    if (c.role == role) out.push_back(c.name);
  }
  return out;
}

std::vector<std::string> TablePlan::inputs() const {
  return names_in(*this, ColumnRole::input);
}

std::vector<std::string> TablePlan::targets() const {
  return names_in(*this, ColumnRole::target);
}

int64_t TablePlan::width() const {
  int64_t sum = 0;
  for (const TableColumn& c : columns) {
    const bool series = window.rows > 0 && c.role == ColumnRole::target;
    if (c.role == ColumnRole::input || series) sum += c.width();
  }
  return sum;
}

int64_t TablePlan::outputs() const {
  return has_classes() ? std::ssize(classes()) : std::ssize(targets());
}

std::string TablePlan::describe() const {
  struct Kind {
    ColumnKind kind;
    std::string_view one, several;
  };
  constexpr Kind kKinds[] = {{ColumnKind::number, "number", "numbers"},
                             {ColumnKind::boolean, "boolean", "booleans"},
                             {ColumnKind::category, "category", "categories"},
                             {ColumnKind::date, "date", "dates"}};
  std::vector<std::string> parts;
  for (const Kind& kind : kKinds) {
    std::vector<int64_t> levels;
    for (const TableColumn& c : columns) {
      if (c.role == ColumnRole::input && c.kind == kind.kind)
        levels.push_back(std::ssize(c.levels) + std::ssize(c.rare));
    }
    if (levels.empty()) continue;
    parts.push_back(plural(std::ssize(levels), kind.one, kind.several));
    if (kind.kind == ColumnKind::category) parts.back() += levels_text(levels);
  }
  const int64_t dropped = std::ssize(names_in(*this, ColumnRole::dropped));
  if (dropped > 0) parts.push_back(cat(dropped, " dropped"));
  const bool series = window.rows > 0;
  if (series) parts.emplace_back("the target");
  const int64_t all = std::ssize(inputs()) + dropped + (series ? std::ssize(targets()) : 0);
  std::string out =
      cat(plural(all, "column", "columns"), ": ", join(parts, ", "), "; ", target_text(*this));
  if (window.rows > 0)
    out += cat("; windows of ", window.rows, " rows, ", plural(window.horizon, "row", "rows"),
               " ahead");
  return out;
}

Result<TablePlan> roles_of(const Table& table, const PlanOptions& options,
                           std::vector<std::string>& notes) {
  TablePlan plan;
  plan.window = options.window;
  plan.scale_target = options.scale_target;
  plan.numbers = table.numbers;
  LOOM_ASSIGN(const Names names, resolve(table, options));
  std::vector<std::string> dropped;
  for (int64_t i = 0; i < std::ssize(table.columns); ++i) {
    const ColumnData& from = table.columns[static_cast<size_t>(i)];
    TableColumn& out = plan.columns.emplace_back(start_of(from));
    const bool chosen = has(names.columns, i);
    if (has(names.target, i)) {
      const bool numbers = options.numbers || names.target.size() > 1;
      LOOM_TRY(set_target(table, from, numbers, out));
    } else if (i == names.weights) {
      out.role = ColumnRole::weight;
      if (from.kind != ColumnKind::number || from.missing > 0)
        return invalid(cat("the weights '", printable(from.name), "' must be numbers without gaps"),
                       table.path);
    } else if (has(names.drop, i) || (!names.columns.empty() && !chosen)) {
      out.role = ColumnRole::dropped;
      out.reason = "the options say so";
    } else {
      const bool has_type = from.kind != ColumnKind::text && from.kind != ColumnKind::empty;
      const std::string reason = chosen && has_type ? std::string() : reason_to_drop(from, i == 0);
      if (reason.empty()) {
        note_guesses(table, from, notes);
        continue;
      }
      out.role = ColumnRole::dropped;
      out.reason = reason;
      dropped.push_back(cat("'", printable(from.name, 24), "' (", reason, ")"));
    }
  }
  // A single column of inputs may count up: points of a curve.
  if (plan.inputs().empty() && plan.window.rows == 0 && names.columns.empty() &&
      numbers_rows(table.columns[0]) && plan.columns[0].reason == "it numbers the rows") {
    plan.columns[0].role = ColumnRole::input;
    plan.columns[0].reason.clear();
    std::erase_if(dropped, [](const std::string& text) { return text.ends_with("the rows)"); });
  }
  if (!dropped.empty())
    notes.push_back(cat(table.path, ": columns that are not inputs: ", join(dropped, ", ")));
  LOOM_TRY(check_targets(table, plan));
  if (plan.inputs().empty() && plan.window.rows == 0)
    return invalid(
        cat("has no column that can be an input", dropped.empty() ? "" : ": ", join(dropped, ", ")),
        table.path);
  note_gaps(table, plan, notes);
  return plan;
}

std::vector<ColumnType> types_of(const TablePlan& plan, bool with_targets) {
  std::vector<ColumnType> out;
  for (const TableColumn& c : plan.columns) {
    const bool target = c.role == ColumnRole::target;
    if (c.role == ColumnRole::dropped) continue;
    if ((target || c.role == ColumnRole::weight) && !with_targets && plan.window.rows == 0)
      continue;
    const bool weight = c.role == ColumnRole::weight;
    out.push_back({c.name, c.kind, c.order, c.tolerant, c.any_order, weight});
  }
  return out;
}

}  // namespace loom::core
