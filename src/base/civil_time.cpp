#include "base/civil_time.hpp"

#include <chrono>

#include "base/text.hpp"

namespace loom::core {
namespace {

namespace chrono = std::chrono;

constexpr std::string_view kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                      "Thursday", "Friday", "Saturday"};
constexpr std::string_view kMonths[] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};

chrono::year_month_day day_of(const CivilTime& t) {
  return chrono::year(t.year) / chrono::month(static_cast<unsigned>(t.month)) /
         chrono::day(static_cast<unsigned>(t.day));
}

size_t weekday(const CivilTime& t) {
  return chrono::weekday(chrono::sys_days(day_of(t))).c_encoding();
}

int day_of_year(const CivilTime& t) {
  const chrono::sys_days first = chrono::year(t.year) / chrono::January / chrono::day(1);
  return static_cast<int>((chrono::sys_days(day_of(t)) - first).count()) + 1;
}

std::string_view name_of(const CivilTime& t, bool month) {
  return month ? kMonths[static_cast<size_t>(t.month - 1)] : kDays[weekday(t)];
}

struct Number {
  int value = 0;
  size_t width = 0;
  char fill = '0';
};

std::optional<Number> number_of(const CivilTime& t, char code) {
  const int half = t.hour % 12 == 0 ? 12 : t.hour % 12;
  switch (code) {
    case 'Y': return Number{t.year, 4};
    case 'C': return Number{t.year / 100, 2};
    case 'y': return Number{t.year % 100, 2};
    case 'm': return Number{t.month, 2};
    case 'd': return Number{t.day, 2};
    case 'e': return Number{t.day, 2, ' '};
    case 'j': return Number{day_of_year(t), 3};
    case 'H': return Number{t.hour, 2};
    case 'I': return Number{half, 2};
    case 'M': return Number{t.minute, 2};
    case 'S': return Number{t.second, 2};
    case 'u': return Number{weekday(t) == 0 ? 7 : static_cast<int>(weekday(t)), 1};
    case 'w': return Number{static_cast<int>(weekday(t)), 1};
    default: return std::nullopt;
  }
}

// The format that a short code abbreviates; "" if it is not one of those.
std::string_view expansion(char code) {
  switch (code) {
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'T':
    case 'X': return "%H:%M:%S";
    case 'R': return "%H:%M";
    case 'r': return "%I:%M:%S %p";
    case 'c': return "%a %b %e %H:%M:%S %Y";
    default: return {};
  }
}

std::optional<std::string> write_code(const CivilTime& t, char code, bool bare) {
  if (const std::optional<Number> number = number_of(t, code)) {
    std::string digits = cat(number->value);
    if (!bare && digits.size() < number->width)
      digits.insert(0, number->width - digits.size(), number->fill);
    return digits;
  }
  if (const std::string_view longer = expansion(code); !longer.empty())
    return format_time(t, longer);
  switch (code) {
    case 'A':
    case 'B': return std::string(name_of(t, code == 'B'));
    case 'a':
    case 'b':
    case 'h': return std::string(name_of(t, code != 'a').substr(0, 3));
    case 'p': return std::string(t.hour < 12 ? "AM" : "PM");
    case 'n': return "\n";
    case 't': return "\t";
    case '%': return "%";
    default: return std::nullopt;
  }
}

// The number `text` if it has only digits, else -1.
int digits_of(std::string_view text) {
  int value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

CivilTime utc_now() {
  const auto now = chrono::floor<chrono::seconds>(chrono::system_clock::now());
  const auto today = chrono::floor<chrono::days>(now);
  const chrono::year_month_day day(today);
  const auto seconds = static_cast<int>((now - today).count());
  return {static_cast<int>(day.year()),
          static_cast<int>(static_cast<unsigned>(day.month())),
          static_cast<int>(static_cast<unsigned>(day.day())),
          seconds / 3600,
          seconds / 60 % 60,
          seconds % 60};
}

Result<CivilTime> parse_date(std::string_view text) {
  CivilTime time;
  const bool shaped = text.size() == 10 && text[4] == '-' && text[7] == '-';
  if (shaped) {
    time.year = digits_of(text.substr(0, 4));
    time.month = digits_of(text.substr(5, 2));
    time.day = digits_of(text.substr(8, 2));
  }
  if (!shaped || time.year < 1 || time.month < 1 || time.day < 1 || !day_of(time).ok())
    return invalid(cat("'", printable(text), "' is not a date; write it as 2024-07-26"));
  return time;
}

std::optional<std::string> format_time(const CivilTime& time, std::string_view format) {
  std::string out;
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    const bool bare = format.substr(at + 1, 1) == "-";
    at += bare ? 2 : 1;
    if (at >= format.size()) return std::nullopt;
    const std::optional<std::string> text = write_code(time, format[at], bare);
    if (!text) return std::nullopt;
    out += *text;
  }
  return out;
}

}  // namespace loom::core
