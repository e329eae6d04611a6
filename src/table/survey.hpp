// The survey of a column: how many of its cells have each type, and its levels. Memory is bounded.
#pragma once

#include <map>
#include <string>

#include "table/table.hpp"

namespace loom::core {

class Survey {
 public:
  void add(std::string_view cell, const NumberForm& form);

  // number: all values are, or nearly all and of many kinds. boolean: all are words of it. date:
  // all are, in one order. category: other texts, unless nearly every one is different.
  ColumnKind kind() const;
  DateOrder order() const { return day_first_ ? DateOrder::day_first : DateOrder::month_first; }
  // Kind, order, counts and levels. as_category: numbers are levels too.
  ColumnData column(std::string name, bool as_category) const;

 private:
  int64_t present() const { return cells_ - missing_; }

  // The first cell that is another type than most; empty: there is none.
  std::string odd_text(ColumnKind most) const;

  int64_t cells_ = 0, missing_ = 0, numbers_ = 0, integers_ = 0, booleans_ = 0, dates_ = 0;
  bool day_first_ = true, month_first_ = true;
  bool ambiguous_ = false;  // a date that both orders read, as other days
  bool codes_ = false;      // a number begins with 0
  std::string missing_text_, no_number_, no_date_;
  bool counts_up_ = true;
  double last_ = 0;
  std::map<std::string, int64_t, std::less<>> levels_;
  size_t level_bytes_ = 0;
  bool many_ = false;     // more levels than are counted
  bool repeats_ = false;  // a value is there twice
};

}  // namespace loom::core
