// The plan as JSON, in the section "model" of files with weights.
#include <algorithm>

#include "base/text.hpp"
#include "table/plan.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kRoles[] = {"input", "target", "weight", "dropped"};
constexpr int64_t kVersion = 1;

JsonValue texts(const std::vector<std::string>& list) {
  JsonValue out = JsonValue::array();
  for (const std::string& text : list) out.push(JsonValue::string(text));
  return out;
}

JsonValue column_json(const TableColumn& c) {
  JsonValue out = JsonValue::object();
  out.add("name", JsonValue::string(c.name));
  out.add("role", JsonValue::string(std::string(kRoles[static_cast<size_t>(c.role)])));
  out.add("kind", JsonValue::string(std::string(column_kind_name(c.kind))));
  if (c.role == ColumnRole::dropped) {
    out.add("reason", JsonValue::string(c.reason));
    return out;
  }
  if (c.integer) out.add("integer", JsonValue::boolean(true));
  if (c.tolerant) out.add("tolerant", JsonValue::boolean(true));
  if (c.indicator) out.add("indicator", JsonValue::boolean(true));
  out.add("fill", JsonValue::real(c.fill));
  if (c.kind == ColumnKind::number || c.kind == ColumnKind::date) {
    out.add("mean", JsonValue::real(c.mean));
    out.add("deviation", JsonValue::real(c.deviation));
  }
  if (c.kind == ColumnKind::category) out.add("levels", texts(c.levels));
  if (c.other) out.add("rare", texts(c.rare));
  if (c.kind != ColumnKind::date) return out;
  out.add("parts", JsonValue::integer(c.parts));
  out.add("day_first", JsonValue::boolean(c.order == DateOrder::day_first));
  if (c.any_order) out.add("any_order", JsonValue::boolean(true));
  return out;
}

// Reads members of one object; the first Error stays.
class Fields {
 public:
  Fields(const JsonValue& json, std::string where) : json_(json), where_(std::move(where)) {}

  std::string text(std::string_view key) {
    const JsonValue* v = json_.find(key);
    return v == nullptr ? std::string() : checked(v->as_string(at(key)));
  }
  double real(std::string_view key, double otherwise) {
    const JsonValue* v = json_.find(key);
    return v == nullptr ? otherwise : checked(v->as_double(at(key)));
  }
  int64_t integer(std::string_view key, int64_t otherwise) {
    const JsonValue* v = json_.find(key);
    return v == nullptr ? otherwise : checked(v->as_int(at(key)));
  }
  bool flag(std::string_view key) {
    const JsonValue* v = json_.find(key);
    return v != nullptr && checked(v->as_bool(at(key)));
  }
  std::vector<std::string> texts(std::string_view key) {
    std::vector<std::string> out;
    const JsonValue* v = json_.find(key);
    if (v == nullptr) return out;
    for (const JsonValue& item : v->elements()) out.push_back(checked(item.as_string(at(key))));
    return out;
  }
  const Status& status() const { return status_; }
  Error error(std::string_view key, std::string_view message) const {
    return bad_file(cat(key, ": ", message), where_);
  }

 private:
  std::string at(std::string_view key) const { return cat(where_, ": ", key); }
  template <class T>
  T checked(Result<T> value) {
    if (value.ok()) return std::move(*value);
    if (status_.ok()) status_ = value.error();
    return T();
  }

  const JsonValue& json_;
  std::string where_;
  Status status_;
};

Result<TableColumn> read_column(const JsonValue& json, const std::string& where) {
  TableColumn out;
  Fields f(json, where);
  out.name = f.text("name");
  const std::string role = f.text("role");
  const auto found = std::ranges::find(kRoles, role);
  if (found == std::end(kRoles)) return f.error("role", "must be input, target, weight or dropped");
  out.role = static_cast<ColumnRole>(found - std::begin(kRoles));
  LOOM_ASSIGN(out.kind, parse_column_kind(f.text("kind"), where));
  out.reason = f.text("reason");
  out.integer = f.flag("integer");
  out.tolerant = f.flag("tolerant");
  out.indicator = f.flag("indicator");
  out.fill = f.real("fill", 0);
  out.mean = f.real("mean", 0);
  out.deviation = f.real("deviation", 1);
  out.levels = f.texts("levels");
  out.rare = f.texts("rare");
  out.other = !out.rare.empty();
  out.parts = static_cast<uint8_t>(f.integer("parts", 0) & 63);
  out.any_order = f.flag("any_order");
  out.order = f.flag("day_first") ? DateOrder::day_first : DateOrder::month_first;
  LOOM_TRY(f.status());
  const bool used = out.role != ColumnRole::dropped;
  if (used && (out.kind == ColumnKind::text || out.kind == ColumnKind::empty))
    return f.error("kind", "a column of this kind cannot be used");
  if (!(out.deviation > 0)) return f.error("deviation", "must be above 0");
  if (used && out.kind == ColumnKind::category && out.role == ColumnRole::input &&
      !(out.fill >= 0 && out.fill <= static_cast<double>(out.levels.size())))
    return f.error("fill", "must be the index of a level");
  return out;
}

}  // namespace

JsonValue plan_json(const TablePlan& plan) {
  JsonValue out = JsonValue::object(), columns = JsonValue::array();
  for (const TableColumn& c : plan.columns) columns.push(column_json(c));
  out.add("version", JsonValue::integer(kVersion));
  out.add("columns", std::move(columns));
  if (plan.numbers.decimal != '.') out.add("decimal", JsonValue::string(","));
  if (plan.numbers.thousands != '\0')
    out.add("thousands", JsonValue::string(std::string(1, plan.numbers.thousands)));
  if (plan.split.share > 0) {
    JsonValue split = JsonValue::object();
    split.add("share", JsonValue::real(plan.split.share));
    split.add("seed", JsonValue::integer(static_cast<int64_t>(plan.split.seed)));
    split.add("shuffle", JsonValue::boolean(plan.split.shuffle));
    out.add("split", std::move(split));
  }
  if (plan.scale_target) out.add("scale_target", JsonValue::boolean(true));
  if (plan.window.rows == 0) return out;
  out.add("window", JsonValue::integer(plan.window.rows));
  out.add("horizon", JsonValue::integer(plan.window.horizon));
  out.add("stride", JsonValue::integer(plan.window.stride));
  return out;
}

Result<TablePlan> read_plan(const JsonValue& json, const std::string& where) {
  TablePlan plan;
  Fields f(json, where);
  if (f.integer("version", 0) != kVersion)
    return bad_file("the plan of the table has another version; update loom", where);
  const JsonValue* columns = json.find("columns");
  if (columns == nullptr || !columns->is_array()) return f.error("columns", "absent");
  for (const JsonValue& column : columns->elements()) {
    LOOM_ASSIGN(plan.columns.emplace_back(), read_column(column, where));
  }
  plan.scale_target = f.flag("scale_target");
  if (const JsonValue* split = json.find("split")) {
    Fields s(*split, where);
    plan.split = {s.real("share", 0), static_cast<uint64_t>(s.integer("seed", 1)),
                  s.flag("shuffle")};
    LOOM_TRY(s.status());
  }
  const std::string decimal = f.text("decimal"), thousands = f.text("thousands");
  if (decimal == ",") plan.numbers.decimal = ',';
  if (thousands.size() == 1) plan.numbers.thousands = thousands[0];
  constexpr int64_t kMaxValues = int64_t{1} << 24;
  plan.window.rows = f.integer("window", 0);
  plan.window.horizon = f.integer("horizon", 1);
  plan.window.stride = f.integer("stride", 1);
  LOOM_TRY(f.status());
  const WindowSpec& w = plan.window;
  if (w.rows < 0 || w.rows > kMaxValues || w.horizon < 1 || w.horizon > kMaxValues || w.stride < 1)
    return f.error("window", "out of range");
  if (plan.width() < 1 || plan.width() > kMaxValues) return f.error("columns", "none is an input");
  return plan;
}

}  // namespace loom::core
