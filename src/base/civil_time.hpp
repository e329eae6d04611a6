// CivilTime: a calendar day and a time of day, for texts that contain a date. Only utc_now() reads
// the clock; all other code gets a CivilTime as an argument.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace loom::core {

struct CivilTime {
  int year = 1970, month = 1, day = 1;  // of the Gregorian calendar
  int hour = 0, minute = 0, second = 0;
};

// The wall clock in UTC.
CivilTime utc_now();

// The beginning of a day written "2024-07-26". Errors: invalid_argument.
Result<CivilTime> parse_date(std::string_view text);

// strftime() in the C locale, for the codes of the C standard without time zones and weeks of the
// year. "-" suppresses leading zeros ("%-d"). Nothing if `format` has another code.
std::optional<std::string> format_time(const CivilTime& time, std::string_view format);

}  // namespace loom::core
