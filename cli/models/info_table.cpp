#include "info_table.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

double number(const JsonValue& json, const char* name) {
  const JsonValue* value = json.find(name);
  return value == nullptr ? 0 : value->number().value_or(0);
}

bool has(const JsonValue& json, const char* name) {
  const JsonValue* value = json.find(name);
  return value != nullptr && value->boolean().value_or(false);
}

std::string levels_of(const JsonValue& column, const char* name) {
  constexpr size_t kMax = 6;
  const JsonValue* levels = column.find(name);
  if (levels == nullptr) return {};
  std::string out;
  const auto& all = levels->elements();
  for (size_t i = 0; i < std::min(all.size(), kMax); ++i)
    out += (i == 0 ? "" : ", ") + all[i].text();
  return all.size() <= kMax ? out : fmt::format("{}, ... ({})", out, all.size());
}

// The value that a gap becomes; empty for dates, whose value is in seconds.
std::string gap_of(const JsonValue& column, const std::string& kind) {
  const double fill = number(column, "fill");
  if (kind == "number") return fmt::format("{:.6g}", fill);
  if (kind == "boolean") return fill != 0 ? "true" : "false";
  const JsonValue* levels = column.find("levels");
  const auto at = static_cast<size_t>(fill);
  if (levels == nullptr || at >= levels->elements().size()) return {};
  return levels->elements()[at].text();
}

std::string text_of(const JsonValue& column, const std::string& role) {
  if (role == "dropped") return "no input: " + column.member_text("reason");
  const std::string kind = column.member_text("kind");
  const std::string levels = levels_of(column, "levels");
  if (role == "weight") return "weight of a sample";
  if (role == "target") {
    if (!levels.empty()) return "target, classes " + levels;
    const double deviation = number(column, "deviation");
    if (kind != "number" || deviation == 1) return "target, a " + kind;
    return fmt::format("target, a number, mean {:.6g}, deviation {:.6g}", number(column, "mean"),
                       deviation);
  }
  std::string out = kind;
  if (kind == "number")
    out += fmt::format(", mean {:.6g}, deviation {:.6g}", number(column, "mean"),
                       number(column, "deviation"));
  if (kind == "date" && !has(column, "any_order"))
    out += has(column, "day_first") ? ", day first" : ", month first";
  if (!levels.empty()) out += ": " + levels;
  const std::string rare = levels_of(column, "rare");
  if (!rare.empty()) out += "; together: " + rare;
  const std::string gap = gap_of(column, kind);
  if (has(column, "indicator")) out += "; gaps have a value of their own";
  return gap.empty() ? out : out + "; a gap becomes " + gap;
}

}  // namespace

void print_plan(const JsonValue& plan) {
  const JsonValue* columns = plan.find("columns");
  if (columns == nullptr) return;
  size_t width = 0;
  for (const JsonValue& column : columns->elements())
    width = std::max(width, column.member_text("name").size());
  width = std::min<size_t>(width, 24);
  std::string_view head = "table";
  for (const JsonValue& column : columns->elements()) {
    write_line(fmt::format("{:<15} {:<{}}  {}", head, column.member_text("name"), width,
                           text_of(column, column.member_text("role"))));
    head = "";
  }
}

}  // namespace loom::cli
