// Cells of tables: numbers in several forms, dates, booleans, and marks of missing values.
#include "table/cells.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace loom::core {
namespace {

struct NumberCase {
  const char* text;
  NumberForm form;
  double value;  // NaN: not a number
};

TEST(Cells, NumbersHaveTheDecimalMarkOfTheTable) {
  constexpr NumberForm kPoint{}, kComma{',', '\0'}, kEnglish{'.', ','}, kGerman{',', '.'},
      kSwiss{'.', '\''}, kSpaced{',', ' '};
  const double none = std::nan("");
  const NumberCase cases[] = {
      {"1.5", kPoint, 1.5},
      {" -2e3 ", kPoint, -2000},
      {"+7", kPoint, 7},
      {"1,5", kPoint, none},
      {"nan", kPoint, none},
      {"inf", kPoint, none},
      {"1e999", kPoint, none},
      {"", kPoint, none},
      {"1 2", kPoint, none},
      {"1,5", kComma, 1.5},
      {"1.5", kComma, none},
      {"-0,25", kComma, -0.25},
      {"1,234,567.5", kEnglish, 1234567.5},
      {"12,34", kEnglish, none},
      {"1,234", kEnglish, 1234},
      {"1.234,5", kGerman, 1234.5},
      {"1234,5", kGerman, 1234.5},
      {"1'234", kSwiss, 1234},
      {"$1,234.50", kEnglish, 1234.5},
      {"-$5", kPoint, -5},
      {"$-5", kPoint, -5},
      {"($5)", kPoint, -5},
      {"12,5 \xe2\x82\xac", kComma, 12.5},
      {"45.3%", kPoint, 45.3},
      {"\xe2\x88\x92"
       "3",
       kPoint, -3},
      {"--3", kPoint, none},
      {"%", kPoint, none},
      {"$", kPoint, none},
      {"1 234,5", kSpaced, 1234.5},
      {",5", kComma, 0.5},
      {"5,", kComma, 5},
  };
  for (const NumberCase& c : cases) {
    const std::optional<double> value = number_of_cell(c.text, c.form);
    EXPECT_EQ(value.has_value(), !std::isnan(c.value)) << c.text;
    if (value) {
      EXPECT_EQ(*value, c.value) << c.text;
    }
  }
}

TEST(Cells, MarksOfMissingValuesAreThoseOfPandasAndMore) {
  for (const char* text :
       {"", "  ", "NA", "n/a", "NaN", "null", "NULL", "None", "<NA>", "#N/A", "-", "?", "--", "."})
    EXPECT_TRUE(is_missing_cell(text)) << text;
  for (const char* text : {"0", "no", "nano", "none of these", "-1", "n"})
    EXPECT_FALSE(is_missing_cell(text)) << text;
}

TEST(Cells, BooleansAreWords) {
  EXPECT_EQ(boolean_of_cell("TRUE"), true);
  EXPECT_EQ(boolean_of_cell(" no "), false);
  EXPECT_EQ(boolean_of_cell("1"), std::nullopt);
  EXPECT_EQ(boolean_of_cell("maybe"), std::nullopt);
}

struct DateCase {
  const char* text;
  DateOrder order;
  double seconds;  // below 0: not a date
};

TEST(Cells, DatesOfEveryCommonFormAreSecondsSince1970) {
  constexpr DateOrder kDay = DateOrder::day_first, kMonth = DateOrder::month_first;
  constexpr double kLast = 1706659200;  // 2024-01-31
  const DateCase cases[] = {
      {"2024-01-31", kDay, kLast},
      {"2024/1/31", kMonth, kLast},
      {"31.01.2024", kMonth, kLast},
      {"31/01/2024", kDay, kLast},
      {"01/31/2024", kMonth, kLast},
      {"01/31/2024", kDay, -1},
      {"31 Jan 2024", kDay, kLast},
      {"31-Jan-2024", kDay, kLast},
      {"January 31, 2024", kDay, kLast},
      {"2024-01-31T12:30", kDay, kLast + 45000},
      {"2024-01-31 12:30:15", kDay, kLast + 45015},
      {"2024-01-31T12:30:15.5Z", kDay, kLast + 45015.5},
      {"2024-01-31T12:30:00+01:00", kDay, kLast + 45000 - 3600},
      {"1/31/2024 2:05 PM", kMonth, kLast + 50700},
      {"12:30", kDay, 45000},
      {"2024-02-30", kDay, -1},
      {"2023-02-29", kDay, -1},
      {"2024-02-29", kDay, 1709164800},
      {"2024-13-01", kDay, -1},
      {"20240131", kDay, -1},
      {"2024-01", kDay, kLast - 30 * 86400},
      {"31.01.24", kMonth, kLast},
      {"31/01/24", kDay, kLast},
      {"31.01.1", kDay, -1},
      {"25:99", kDay, -1},
      {"hello", kDay, -1},
      {"2024-01-31x", kDay, -1},
  };
  for (const DateCase& c : cases) {
    const std::optional<DateTime> date = date_of_cell(c.text, c.order);
    EXPECT_EQ(date.has_value(), c.seconds >= 0) << c.text;
    if (date) {
      EXPECT_EQ(date->seconds, c.seconds) << c.text;
    }
  }
}

TEST(Cells, PartsOfADateAreThoseOfTheGregorianCalendar) {
  struct Case {
    const char* text;
    DateParts parts;
  };
  const Case cases[] = {
      {"1970-01-01", {1970, 1, 1, 3, 1, 0}},
      {"2024-02-29 06:30", {2024, 2, 29, 3, 60, 6.5}},
      {"2024-12-31", {2024, 12, 31, 1, 366, 0}},
      {"1900-03-01", {1900, 3, 1, 3, 60, 0}},
      {"1969-12-31 23:00", {1969, 12, 31, 2, 365, 23}},
      {"2000-01-01", {2000, 1, 1, 5, 1, 0}},
  };
  for (const Case& c : cases) {
    const DateParts p = parts_of_date(date_of_cell(c.text, DateOrder::day_first)->seconds);
    EXPECT_EQ(p.year, c.parts.year) << c.text;
    EXPECT_EQ(p.month, c.parts.month) << c.text;
    EXPECT_EQ(p.day, c.parts.day) << c.text;
    EXPECT_EQ(p.weekday, c.parts.weekday) << c.text;
    EXPECT_EQ(p.day_of_year, c.parts.day_of_year) << c.text;
    EXPECT_EQ(p.hour, c.parts.hour) << c.text;
  }
}

}  // namespace
}  // namespace loom::core
