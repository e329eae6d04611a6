#include "table/survey.hpp"

#include <algorithm>
#include <cmath>

namespace loom::core {
namespace {

constexpr size_t kMaxLevelBytes = size_t{4} << 20;
// The largest share of odd cells in a column of numbers.
constexpr double kMaxOddShare = 0.02;

bool all_are_numbers(const std::vector<std::string>& levels) {
  return std::ranges::all_of(
      levels, [](const std::string& level) { return number_of_cell(level, {}).has_value(); });
}

}  // namespace

void Survey::add(std::string_view cell, const NumberForm& form) {
  ++cells_;
  const std::string_view text = trimmed_cell(cell);
  if (is_missing_cell(text)) {
    ++missing_;
    if (missing_text_.empty()) missing_text_ = text;
    return;
  }
  if (!many_) {
    const auto found = levels_.find(text);
    if (found != levels_.end()) {
      ++found->second;
      repeats_ = true;
    } else {
      levels_.emplace(text, 1);
      level_bytes_ += text.size();
      many_ = levels_.size() > kMaxLevels || level_bytes_ > kMaxLevelBytes;
    }
  }
  if (const auto number = number_of_cell(text, form)) {
    ++numbers_;
    codes_ = codes_ || has_leading_zero(text);
    if (no_date_.empty()) no_date_ = text;
    integers_ += *number == std::floor(*number) && std::abs(*number) < 9e15 ? 1 : 0;
    counts_up_ = counts_up_ && (numbers_ == 1 || *number == last_ + 1);
    last_ = *number;
    return;
  }
  counts_up_ = false;
  if (no_number_.empty()) no_number_ = text;
  booleans_ += boolean_of_cell(text) ? 1 : 0;
  const auto day = date_of_cell(text, DateOrder::day_first);
  const auto month = date_of_cell(text, DateOrder::month_first);
  if (!day && !month) {
    if (no_date_.empty()) no_date_ = text;
    return;
  }
  ++dates_;
  day_first_ = day_first_ && day;
  month_first_ = month_first_ && month;
  ambiguous_ = ambiguous_ || (day && month && day->seconds != month->seconds);
}

ColumnKind Survey::kind() const {
  const int64_t all = present();
  if (all == 0) return ColumnKind::empty;
  if (numbers_ == all && !codes_) return ColumnKind::number;
  if (booleans_ == all) return ColumnKind::boolean;
  constexpr size_t kVaried = 20;
  const bool varied = many_ || levels_.size() > kVaried;
  const auto nearly = [&](int64_t count) {
    return static_cast<double>(all - count) <= kMaxOddShare * static_cast<double>(all) && varied;
  };
  const bool one_order = day_first_ || month_first_;
  if (one_order && (dates_ == all || nearly(dates_))) return ColumnKind::date;
  if (!codes_ && nearly(numbers_)) return ColumnKind::number;
  constexpr int64_t kSmallColumn = 20;
  const auto different = static_cast<int64_t>(levels_.size());
  if (many_ || (all > kSmallColumn && 2 * different > all)) return ColumnKind::text;
  return ColumnKind::category;
}

std::string Survey::odd_text(ColumnKind most) const {
  return most == ColumnKind::date ? no_date_ : no_number_;
}

ColumnData Survey::column(std::string name, bool as_category) const {
  ColumnData out;
  out.name = std::move(name);
  out.kind = kind();
  if (as_category && !many_ && out.kind != ColumnKind::empty) out.kind = ColumnKind::category;
  out.order = order();
  out.missing = missing_;
  out.missing_text = missing_text_;
  out.codes_of_digits = codes_ && numbers_ == present();
  out.any_order = day_first_ && month_first_;
  out.ambiguous = ambiguous_ && out.any_order;
  out.integer = numbers_ > 0 && integers_ == numbers_;
  out.unique = !repeats_ && present() > 1;
  out.counts_up = counts_up_ && numbers_ == cells_ && cells_ > 2;
  if (out.kind == ColumnKind::number) out.odd = present() - numbers_;
  if (out.kind == ColumnKind::date) out.odd = present() - dates_;
  const bool dated = dates_ > numbers_;
  out.mixed_order =
      out.kind == ColumnKind::text && dates_ == present() && !day_first_ && !month_first_;
  if (out.kind == ColumnKind::text) out.odd_text = no_number_;
  if (out.kind == ColumnKind::text && 2 * std::max(dates_, numbers_) > present()) {
    out.almost = dated ? ColumnKind::date : ColumnKind::number;
    out.odd = present() - std::max(dates_, numbers_);
    out.odd_text = odd_text(out.almost);
  }
  if (out.kind != ColumnKind::category && out.kind != ColumnKind::boolean) return out;
  for (const auto& [level, count] : levels_) out.levels.push_back(level);
  if (!all_are_numbers(out.levels)) return out;
  std::ranges::stable_sort(out.levels, {}, [](const std::string& level) {
    return number_of_cell(level, {}).value_or(0);
  });
  return out;
}

}  // namespace loom::core
