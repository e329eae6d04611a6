#include "table/cells.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

#include "base/text.hpp"

namespace loom::core {
namespace {

// The marks of pandas, then those of other programs.
constexpr std::string_view kMissingWords[] = {
    "#N/A",    "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
    "1.#QNAN", "<NA>",     "N/A", "NA",      "NULL",     "NaN",  "None", "n/a",
    "nan",     "null",     "-",   "--",      "?",        ".",
};
constexpr std::string_view kTrue[] = {"true", "yes", "y", "t", "on"};
constexpr std::string_view kFalse[] = {"false", "no", "n", "f", "off"};
constexpr std::string_view kMonths[] = {"jan", "feb", "mar", "apr", "may", "jun",
                                        "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr size_t kLongestWord = 12;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Removes marks between groups of three digits. False if a group has another length.
bool join_groups(std::string_view digits, char mark, std::string& out) {
  size_t group = 0, groups = 0;
  for (const char c : digits) {
    if (c != mark) {
      out += c;
      group += is_digit(c) ? 1 : 0;
      continue;
    }
    if (group == 0 || group > 3 || (groups > 0 && group != 3)) return false;
    ++groups;
    group = 0;
  }
  return groups == 0 || group == 3;
}

// The text with a decimal point and without marks of thousands; empty if it has another form.
std::string plain_number(std::string_view s, const NumberForm& form) {
  const size_t point = s.find(form.decimal);
  const std::string_view whole = s.substr(0, point);
  std::string out;
  if (form.thousands != '\0' && whole.find(form.thousands) != whole.npos) {
    if (!join_groups(whole, form.thousands, out)) return {};
  } else {
    out = whole;
  }
  if (form.decimal != '.' && out.find('.') != out.npos) return {};
  if (point != s.npos) {
    out += '.';
    out += s.substr(point + 1);
  }
  return out;
}

// Removes a prefix or suffix of the list, and the spaces next to it.
bool strip(std::string_view& s, std::span<const std::string_view> marks) {
  for (const std::string_view mark : marks) {
    if (s.size() > mark.size() && s.starts_with(mark)) {
      s = trimmed_cell(s.substr(mark.size()));
      return true;
    }
    if (s.size() > mark.size() && s.ends_with(mark)) {
      s = trimmed_cell(s.substr(0, s.size() - mark.size()));
      return true;
    }
  }
  return false;
}

// Reads the parts of a date from left to right.
class DateReader {
 public:
  DateReader(std::string_view text, DateOrder order) : text_(text), order_(order) {}

  std::optional<DateTime> read() {
    DateTime out;
    double days = 0, seconds = 0;
    const size_t start = at_;
    if (date(days)) {
      out.has_date = true;
      if (at_ < text_.size() && !skip('T') && !skip(' ')) return {};
      while (skip(' ')) {
      }
    } else {
      at_ = start;
    }
    if (at_ < text_.size()) {
      if (!time(seconds)) return {};
      out.has_time = true;
    }
    if (at_ != text_.size() || (!out.has_date && !out.has_time)) return {};
    out.seconds = days * 86400 + seconds;
    return out;
  }

 private:
  bool skip(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // A number of `least` to `most` digits, or -1.
  int number(size_t least, size_t most) {
    const size_t start = at_;
    int value = 0;
    while (at_ < text_.size() && at_ - start < most && is_digit(text_[at_]))
      value = value * 10 + (text_[at_++] - '0');
    const bool more = at_ < text_.size() && is_digit(text_[at_]);
    return at_ - start < least || more ? -1 : value;
  }
  // 1 to 12, or -1.
  int month_name() {
    const size_t start = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    if (at_ - start < 3) return -1;
    const std::string name = to_lower_ascii(text_.substr(start, 3));
    const auto found = std::find(std::begin(kMonths), std::end(kMonths), name);
    if (found == std::end(kMonths)) return -1;
    return static_cast<int>(found - std::begin(kMonths)) + 1;
  }
  void gap() {
    skip(',');
    skip('.');
    while (skip(' ') || skip('-')) {
    }
  }
  static bool valid(int year, int month, int day, double& days) {
    if (year < 0 || month < 1 || month > 12 || day < 1) return false;
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (day > kDays[month - 1] + (month == 2 && leap ? 1 : 0)) return false;
    // Days since 1970 of the Gregorian calendar, whose years here begin in March.
    const int64_t y = year - (month <= 2 ? 1 : 0);
    const int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    days = static_cast<double>(era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year -
                               719468);
    return true;
  }

  bool date(double& days) {
    if (at_ < text_.size() && is_letter(text_[at_])) return month_first(days);
    const size_t start = at_;
    const int year = number(4, 4);
    if (year >= 0) return year_first(year, days);
    at_ = start;
    const int first = number(1, 2);
    if (first < 0 || at_ >= text_.size()) return false;
    const char mark = text_[at_];
    if (mark == ' ' || is_letter(mark) ||
        (mark == '-' && at_ + 1 < text_.size() && is_letter(text_[at_ + 1]))) {
      gap();
      const int month = month_name();
      gap();
      return valid(number(4, 4), month, first, days);
    }
    if (mark != '/' && mark != '.' && mark != '-') return false;
    ++at_;
    const int second = number(1, 2);
    if (second < 0 || !skip(mark)) return false;
    const int last = any_year();
    const bool day_first = mark == '.' || order_ == DateOrder::day_first;
    return day_first ? valid(last, second, first, days) : valid(last, first, second, days);
  }
  // Four digits; or two, of 1969 to 2068.
  int any_year() {
    const size_t start = at_;
    const int whole = number(4, 4);
    if (whole >= 0) return whole;
    at_ = start;
    const int two = number(2, 2);
    return two < 0 ? -1 : two + (two < 69 ? 2000 : 1900);
  }
  bool year_first(int year, double& days) {
    if (at_ >= text_.size()) return false;
    const char mark = text_[at_];
    if (mark != '-' && mark != '/' && mark != '.') return false;
    ++at_;
    const int month = number(1, 2);
    if (month < 0) return false;
    if (at_ == text_.size()) return mark != '.' && valid(year, month, 1, days);  // 2024-01
    return skip(mark) && valid(year, month, number(1, 2), days);
  }
  bool month_first(double& days) {
    const int month = month_name();
    gap();
    const int day = number(1, 2);
    gap();
    return day >= 0 && valid(number(4, 4), month, day, days);
  }

  bool time(double& seconds) {
    int hour = number(1, 2);
    if (hour < 0 || hour > 24 || !skip(':')) return false;
    const int minute = number(2, 2);
    if (minute < 0 || minute > 59) return false;
    double second = 0;
    if (skip(':')) {
      const int whole = number(2, 2);
      if (whole < 0 || whole > 60) return false;
      second = whole;
      double scale = 0.1;
      if (skip('.') || skip(',')) {
        for (; at_ < text_.size() && is_digit(text_[at_]); ++at_, scale /= 10)
          second += (text_[at_] - '0') * scale;
      }
    }
    while (skip(' ')) {
    }
    if (!noon(hour)) return false;
    seconds = hour * 3600.0 + minute * 60.0 + second;
    return zone(seconds);
  }
  bool noon(int& hour) {
    if (at_ + 2 > text_.size() || !is_letter(text_[at_]) || text_[at_] == 'Z') return true;
    const std::string half = to_lower_ascii(text_.substr(at_, 2));
    if (half != "am" && half != "pm") return false;
    if (hour < 1 || hour > 12) return false;
    at_ += 2;
    hour = hour % 12 + (half == "pm" ? 12 : 0);
    return true;
  }
  bool zone(double& seconds) {
    if (skip('Z')) return true;
    const bool east = skip('+');
    if (!east && !skip('-')) return true;
    const int hours = number(2, 2) < 0 ? -1 : text_[at_ - 1] - '0' + 10 * (text_[at_ - 2] - '0');
    if (hours < 0 || hours > 14) return false;
    skip(':');
    const int minutes = number(2, 2);
    if (minutes < 0 || minutes > 59) return false;
    seconds -= (east ? 1 : -1) * (hours * 3600.0 + minutes * 60.0);
    return true;
  }

  std::string_view text_;
  DateOrder order_;
  size_t at_ = 0;
};

}  // namespace

std::string_view trimmed_cell(std::string_view s) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!s.empty() && blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && blank(s.back())) s.remove_suffix(1);
  return s;
}

bool is_missing_cell(std::string_view cell) {
  const std::string_view s = trimmed_cell(cell);
  if (s.empty()) return true;
  return s.size() <= kLongestWord && is_one_of(s, kMissingWords);
}

// A number without a sign.
static std::optional<double> unsigned_number(std::string_view s, const NumberForm& form) {
  if (s.size() > 1 && s.front() == '+') s.remove_prefix(1);
  if (s.empty() || s.front() == '-' || is_letter(s.back())) return {};  // "nan", "inf", "1e"
  std::string own;
  if (form.decimal != '.' || form.thousands != '\0') {
    own = plain_number(s, form);
    s = own;
  }
  double value = 0;
  const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (code != std::errc() || end != s.data() + s.size() || s.empty()) return {};
  return value;
}

// $, euro, pound, yen or %, before or after the number.
constexpr std::string_view kUnits[] = {"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5", "%"};
constexpr std::string_view kMinus = "\xe2\x88\x92";

std::optional<double> number_of_cell(std::string_view cell, const NumberForm& form) {
  std::string_view s = trimmed_cell(cell);
  bool negative = s.size() > 2 && s.front() == '(' && s.back() == ')';  // as accountants write it
  if (negative) s = trimmed_cell(s.substr(1, s.size() - 2));
  const auto take_sign = [&] {
    for (const std::string_view minus : {kMinus, std::string_view("-")}) {
      if (negative || !s.starts_with(minus)) continue;
      negative = true;
      s.remove_prefix(minus.size());
    }
  };
  take_sign();
  if (strip(s, kUnits)) take_sign();  // -$5, $-5
  if (const auto value = unsigned_number(s, form)) return negative ? -*value : *value;
  return {};
}

bool has_leading_zero(std::string_view cell) {
  const std::string_view s = trimmed_cell(cell);
  return s.size() > 1 && s[0] == '0' && std::ranges::all_of(s, is_digit);
}

std::optional<bool> boolean_of_cell(std::string_view cell) {
  const std::string_view s = trimmed_cell(cell);
  if (s.empty() || s.size() > kLongestWord) return {};
  const std::string word = to_lower_ascii(s);
  if (is_one_of(word, kTrue)) return true;
  if (is_one_of(word, kFalse)) return false;
  return {};
}

std::optional<DateTime> date_of_cell(std::string_view cell, DateOrder order) {
  const std::string_view s = trimmed_cell(cell);
  constexpr size_t kShortest = 4, kLongest = 40;
  if (s.size() < kShortest || s.size() > kLongest) return {};
  return DateReader(s, order).read();
}

DateParts parts_of_date(double seconds) {
  DateParts out;
  const double whole = std::floor(seconds / 86400);
  out.hour = (seconds - whole * 86400) / 3600;
  const auto days = static_cast<int64_t>(whole);
  out.weekday = static_cast<int>(((days + 3) % 7 + 7) % 7);
  const int64_t z = days + 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097, of_era = z - era * 146097;
  const int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  const int64_t month = (5 * of_year + 2) / 153;  // 0 is March
  out.day = static_cast<int>(of_year - (153 * month + 2) / 5 + 1);
  out.month = static_cast<int>(month < 10 ? month + 3 : month - 9);
  out.year = year + era * 400 + (out.month <= 2 ? 1 : 0);
  const bool leap = (out.year % 4 == 0 && out.year % 100 != 0) || out.year % 400 == 0;
  const int64_t before_march = leap ? 60 : 59;
  out.day_of_year = static_cast<int>(out.month > 2 ? of_year + before_march + 1 : of_year - 305);
  return out;
}

}  // namespace loom::core
