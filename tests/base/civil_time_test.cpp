// Dates as text, against strftime() of the C library.
#include "base/civil_time.hpp"

#include <gtest/gtest.h>

#include <ctime>

namespace loom::core {
namespace {

TEST(CivilTimeTest, WritesEveryCodeAsTheCLibraryDoes) {
  const CivilTime times[] = {{2024, 7, 26, 0, 0, 0},     {2024, 2, 29, 23, 59, 59},
                             {2025, 12, 31, 12, 0, 1},   {1999, 1, 1, 1, 2, 3},
                             {2000, 10, 10, 10, 10, 10}, {2026, 3, 1, 13, 30, 0}};
  const char* const formats[] = {"%d %b %Y", "%A, %B %e", "%a %h %-d", "%H:%M:%S", "%I:%M %p",
                                 "%j",       "%y%m%d",    "%F %T",     "%D",       "%u %w %C",
                                 "100%%",    "%n%t",      "%c",        "%x %X",    "%R %r",
                                 "plain",    ""};
  for (const CivilTime& t : times) {
    std::tm c = {};
    c.tm_year = t.year - 1900;
    c.tm_mon = t.month - 1;
    c.tm_mday = t.day;
    c.tm_hour = t.hour;
    c.tm_min = t.minute;
    c.tm_sec = t.second;
    ASSERT_NE(timegm(&c), -1);  // fills in the days of the week and of the year
    for (const char* format : formats) {
      char expected[200] = {};
      std::strftime(expected, sizeof expected, format, &c);
      EXPECT_EQ(format_time(t, format).value_or("none"), expected) << format;
    }
  }
}

TEST(CivilTimeTest, KnowsNoOtherCode) {
  for (const char* format : {"%", "%-", "%Q", "%Z", "a %V", "%\xFF"})
    EXPECT_FALSE(format_time({}, format).has_value()) << format;
}

TEST(CivilTimeTest, ReadsDatesThatExist) {
  EXPECT_EQ(format_time(*parse_date("2024-07-26"), "%d %b %Y"), "26 Jul 2024");
  EXPECT_EQ(format_time(*parse_date("2024-02-29"), "%j"), "060");
  for (const char* text : {"", "2024", "2024-7-26", "2024-13-01", "2023-02-29", "2024-00-10",
                           "0000-01-01", "2024-07-26 ", "26-07-2024", "+024-07-26"}) {
    const Result<CivilTime> date = parse_date(text);
    ASSERT_FALSE(date.ok()) << text;
    EXPECT_EQ(date.error().code, Code::invalid_argument);
  }
  EXPECT_EQ(parse_date("tomorrow").error().str(),
            "'tomorrow' is not a date; write it as 2024-07-26");
}

TEST(CivilTimeTest, NowIsTheDayOfTheClock) {
  const std::time_t before = std::time(nullptr);
  const CivilTime now = utc_now();
  const std::time_t after = std::time(nullptr);
  std::tm c = {};
  c.tm_year = now.year - 1900;
  c.tm_mon = now.month - 1;
  c.tm_mday = now.day;
  c.tm_hour = now.hour;
  c.tm_min = now.minute;
  c.tm_sec = now.second;
  const std::time_t seconds = timegm(&c);
  EXPECT_GE(seconds, before - 1);
  EXPECT_LE(seconds, after + 1);
}

}  // namespace
}  // namespace loom::core
