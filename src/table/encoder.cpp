#include "table/encoder.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <unordered_map>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr int32_t kUnknown = -2;

float scaled(const TableColumn& plan, double value) {
  return static_cast<float>((value - plan.mean) / plan.deviation);
}

// Writes the values of one column into the rows of a matrix, from `at` on.
class ColumnEncoder {
 public:
  ColumnEncoder(const TableColumn& plan, const ColumnData& column) : plan_(plan), column_(column) {
    if (plan.kind == ColumnKind::category) map_levels();
  }

  void write(int64_t row, float* to) {
    bool missing = false;
    float* const end = to + plan_.width() - (plan_.indicator ? 1 : 0);
    if (plan_.kind == ColumnKind::category) {
      const int64_t level = level_of(row, missing);
      if (level >= 0) to[level] = 1;
    } else {
      double value = column_.values[static_cast<size_t>(row)];
      missing = is_gap(value);
      if (missing) value = plan_.fill;
      if (plan_.kind == ColumnKind::number) *to = scaled(plan_, value);
      if (plan_.kind == ColumnKind::boolean) *to = static_cast<float>(value);
      if (plan_.kind == ColumnKind::date) write_date(value, to);
    }
    if (plan_.indicator && missing) *end = 1;
    gaps_ += missing && !plan_.indicator ? 1 : 0;
  }

  void note(const std::string& path, std::vector<std::string>& notes) const {
    if (unknown_ > 0)
      notes.push_back(cat(path, ": ", unknown_, " cells of column '", printable(plan_.name),
                          "' have a level that training did not, such as '", first_unknown_, "'"));
    if (gaps_ > 0)
      notes.push_back(cat(path, ": ", gaps_, " cells of column '", printable(plan_.name),
                          plan_.role == ColumnRole::target
                              ? "' are missing; as inputs of windows they are filled"
                              : "' are missing, but none was in training; they are filled"));
  }

 private:
  void map_levels() {
    std::unordered_map<std::string_view, int32_t> indices;
    for (size_t i = 0; i < plan_.levels.size(); ++i)
      indices.emplace(plan_.levels[i], static_cast<int32_t>(i));
    for (const std::string& level : plan_.rare)
      indices.emplace(level, static_cast<int32_t>(plan_.levels.size()));
    for (const std::string& level : column_.levels) {
      const auto found = indices.find(level);
      levels_.push_back(found == indices.end() ? kUnknown : found->second);
    }
  }
  int64_t level_of(int64_t row, bool& missing) {
    const int32_t code = column_.codes[static_cast<size_t>(row)];
    missing = code < 0;
    if (missing) return static_cast<int64_t>(plan_.fill);
    const int32_t level = levels_[static_cast<size_t>(code)];
    if (level == kUnknown && unknown_++ == 0)
      first_unknown_ = printable(column_.levels[static_cast<size_t>(code)], 24);
    return level;
  }
  void write_date(double seconds, float* to) const {
    const DateParts d = parts_of_date(seconds);
    const auto cycle = [&](uint8_t part, double share) {
      if ((plan_.parts & part) == 0) return;
      *to++ = static_cast<float>(std::sin(2 * std::numbers::pi * share));
      *to++ = static_cast<float>(std::cos(2 * std::numbers::pi * share));
    };
    if ((plan_.parts & kYear) != 0) *to++ = scaled(plan_, static_cast<double>(d.year));
    cycle(kMonth, (d.month - 1) / 12.0);
    cycle(kDay, (d.day - 1) / 31.0);
    cycle(kWeekday, d.weekday / 7.0);
    cycle(kHour, d.hour / 24.0);
    cycle(kDayOfYear, (d.day_of_year - 1) / 366.0);
  }

  const TableColumn& plan_;
  const ColumnData& column_;
  std::vector<int32_t> levels_;  // of the codes of the column
  int64_t unknown_ = 0, gaps_ = 0;
  std::string first_unknown_;
};

const ColumnData* column_named(const Table& table, const std::string& name) {
  for (const ColumnData& column : table.columns) {
    if (column.name == name && !(column.values.empty() && column.codes.empty())) return &column;
  }
  return nullptr;
}

Error absent(const Table& table, const std::string& name) {
  return bad_file(cat("has no column '", printable(name), "'"), table.path);
}

// [rows][width]: the input values of every row. In a series, targets are inputs too.
Result<std::vector<float>> encode_rows(const Table& table, const TablePlan& plan,
                                       std::vector<std::string>& notes) {
  const int64_t width = plan.width();
  std::vector<float> out(static_cast<size_t>(table.rows * width), 0.0f);
  int64_t at = 0;
  for (const TableColumn& c : plan.columns) {
    const bool series = plan.window.rows > 0 && c.role == ColumnRole::target;
    if (c.role != ColumnRole::input && !series) continue;
    const ColumnData* column = column_named(table, c.name);
    if (column == nullptr) return absent(table, c.name);
    ColumnEncoder encoder(c, *column);
    for (int64_t row = 0; row < table.rows; ++row)
      encoder.write(row, out.data() + row * width + at);
    encoder.note(table.path, notes);
    at += c.width();
  }
  return out;
}

bool has_target(const ColumnData& column, int64_t row) {
  const auto i = static_cast<size_t>(row);
  return column.codes.empty() ? !is_gap(column.values[i]) : column.codes[i] >= 0;
}

// The level of a target as text, as the plan has it.
std::string class_text(const ColumnData& column, int64_t row, bool integer,
                       const NumberForm& form) {
  const auto i = static_cast<size_t>(row);
  const std::string& text = column.levels[static_cast<size_t>(column.codes[i])];
  if (!integer) return text;
  const std::optional<double> value = number_of_cell(text, form);  // "1.0" is 1
  return value ? cat(static_cast<int64_t>(*value)) : text;
}

std::vector<const ColumnData*> targets_of(const Table& table, const TablePlan& plan) {
  std::vector<const ColumnData*> out;
  for (const std::string& name : plan.targets()) out.push_back(column_named(table, name));
  return out;
}

bool all_there(const std::vector<const ColumnData*>& targets, int64_t row) {
  return std::ranges::all_of(targets, [&](const ColumnData* c) { return has_target(*c, row); });
}

// The last rows of the windows, or all rows.
std::vector<int64_t> sample_rows(const Table& table, const TablePlan& plan, bool with_targets) {
  const WindowSpec& w = plan.window;
  std::vector<int64_t> out;
  const int64_t first = w.rows > 0 ? w.rows - 1 : 0;
  const int64_t ahead = w.rows > 0 && with_targets ? w.horizon : 0;
  const int64_t step = w.rows > 0 && with_targets ? w.stride : 1;
  for (int64_t row = first; row + ahead < table.rows; row += step) out.push_back(row);
  return out;
}

Status add_labels(const Table& table, const TablePlan& plan, const ColumnData& column,
                  int64_t ahead, EncodedTable& out) {
  std::unordered_map<std::string, int32_t> indices;
  for (const std::string& name : plan.classes())
    indices.emplace(name, static_cast<int32_t>(indices.size()));
  const auto target = std::ranges::find(plan.columns, ColumnRole::target, &TableColumn::role);
  for (const int64_t row : out.rows) {
    const std::string text = class_text(column, row + ahead, target->integer, table.numbers);
    const auto found = indices.find(text);
    if (found == indices.end()) {
      return bad_file(cat("row ", row + ahead + 1, ", column '", printable(column.name),
                          "': class '", printable(text), "' was not in training"),
                      table.path);
    }
    out.labels.push_back(found->second);
  }
  return {};
}

Status add_targets(const Table& table, const TablePlan& plan, EncodedTable& out) {
  const int64_t ahead = plan.window.rows > 0 ? plan.window.horizon : 0;
  const std::vector<const ColumnData*> targets = targets_of(table, plan);
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] == nullptr) return absent(table, plan.targets()[i]);
  }
  const auto left_out =
      std::erase_if(out.rows, [&](int64_t row) { return !all_there(targets, row + ahead); });
  if (left_out > 0)
    out.notes.push_back(cat(table.path, ": ", left_out, " rows without a target are left out"));
  if (plan.has_classes()) return add_labels(table, plan, *targets[0], ahead, out);
  for (const int64_t row : out.rows) {
    for (const ColumnData* column : targets)
      out.targets.push_back(static_cast<float>(column->values[static_cast<size_t>(row + ahead)]));
  }
  return {};
}

Status add_weights(const Table& table, const TablePlan& plan, EncodedTable& out) {
  for (const TableColumn& c : plan.columns) {
    if (c.role != ColumnRole::weight) continue;
    const ColumnData* column = column_named(table, c.name);
    if (column == nullptr) continue;  // has a note
    for (const int64_t row : out.rows)
      out.weights.push_back(static_cast<float>(column->values[static_cast<size_t>(row)]));
  }
  return {};
}

}  // namespace

int64_t TableColumn::width() const {
  const int64_t gap = indicator ? 1 : 0;
  if (role == ColumnRole::target) return kind == ColumnKind::category ? std::ssize(levels) : 1;
  switch (kind) {
    case ColumnKind::category: return std::ssize(levels) + (other ? 1 : 0) + gap;
    case ColumnKind::date: {
      int64_t values = (parts & kYear) != 0 ? 1 : 0;
      for (const uint8_t part : {kMonth, kDay, kWeekday, kHour, kDayOfYear})
        values += (parts & part) != 0 ? 2 : 0;
      return values + gap;
    }
    default: return 1 + gap;
  }
}

Result<EncodedTable> encode_table(const Table& table, const TablePlan& plan, bool with_targets) {
  EncodedTable out;
  LOOM_ASSIGN(std::vector<float> values, encode_rows(table, plan, out.notes));
  out.rows = sample_rows(table, plan, with_targets);
  if (with_targets) {
    LOOM_TRY(add_targets(table, plan, out));
    LOOM_TRY(add_weights(table, plan, out));
  }
  out.samples = std::ssize(out.rows);
  if (out.samples == 0)
    return bad_file(plan.window.rows > 0 ? cat("has ", table.rows,
                                               " rows, too few for a window of ", plan.window.rows)
                                         : std::string("no row has a target"),
                    table.path);
  if (plan.window.rows == 0 && out.samples == table.rows) {
    out.inputs = std::move(values);
    return out;
  }
  const int64_t window = std::max<int64_t>(plan.window.rows, 1), width = plan.width();
  out.inputs.reserve(static_cast<size_t>(out.samples * window * width));
  for (const int64_t row : out.rows) {
    const auto first = values.begin() + (row - window + 1) * width;
    out.inputs.insert(out.inputs.end(), first, first + window * width);
  }
  return out;
}

std::vector<int64_t> rows_with_targets(const Table& table, const TablePlan& plan) {
  const std::vector<const ColumnData*> targets = targets_of(table, plan);
  std::vector<int64_t> out = sample_rows(table, plan, true);
  const int64_t ahead = plan.window.rows > 0 ? plan.window.horizon : 0;
  std::erase_if(out, [&](int64_t row) { return !all_there(targets, row + ahead); });
  return out;
}

}  // namespace loom::core
