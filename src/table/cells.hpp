// Values of cells: numbers, booleans, dates, and marks of a missing value. No locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace loom::core {

struct NumberForm {
  char decimal = '.';
  // Between groups of three digits: , . ' or a space; 0 means none.
  char thousands = '\0';
};

// Whether the value of a cell is missing.
inline bool is_gap(double value) {
  return value != value;
}

std::string_view trimmed_cell(std::string_view cell);

// Empty, or one of the marks that pandas reads as missing, or -, ? and the like.
bool is_missing_cell(std::string_view cell);

// A finite decimal number; also 1e3, (5) as -5, 45.3 % as 45.3, $3.40 as 3.4.
std::optional<double> number_of_cell(std::string_view cell, const NumberForm& form);

// true and false, yes and no, y and n, t and f, on and off; in any case.
std::optional<bool> boolean_of_cell(std::string_view cell);

// How 03/04/2024 is read; dates that begin with the year need no order.
enum class DateOrder : uint8_t { day_first, month_first };

struct DateTime {
  double seconds = 0;  // since 1970, or since midnight if there is no date
  bool has_date = false, has_time = false;
};

// Digits that begin with 0, as codes do: 01067.
bool has_leading_zero(std::string_view cell);

// 2024-01-31, 2024-01, 2024/1/31, 31.1.24, 31.1.2024, 31/01/2024, 1/31/2024, 31 Jan 2024, Jan 31,
// 2024; then or alone a time: 14:30, 14:30:15.5, 2:30 PM, with Z or an offset as +01:00, which is
// subtracted.
std::optional<DateTime> date_of_cell(std::string_view cell, DateOrder order);

// The parts of a date, of seconds since 1970.
struct DateParts {
  int64_t year = 1970;
  int month = 1, day = 1;  // from 1
  int weekday = 0;         // Monday is 0
  int day_of_year = 1;     // from 1
  double hour = 0;         // with its fraction
};
DateParts parts_of_date(double seconds);

}  // namespace loom::core
