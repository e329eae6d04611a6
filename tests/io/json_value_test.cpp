// JsonValue: typed access, copies, and dump_json.
#include <cmath>
#include <limits>

#include "io/io_testing.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

using test::expect_error;

JsonValue sample() {
  const auto value = parse_json(
      R"({"n":null,"t":true,"i":-7,"u":18446744073709551615,"r":2.5,"s":"x","a":[1],"o":{"k":0}})",
      "sample");
  EXPECT_TRUE(value.ok());
  return *value;
}

TEST(JsonValue, KnowsItsType) {
  const JsonValue v = sample();
  EXPECT_TRUE(v.find("n")->is_null());
  EXPECT_TRUE(v.find("t")->is_bool());
  EXPECT_TRUE(v.find("i")->is_int());
  EXPECT_TRUE(v.find("u")->is_int());
  EXPECT_FALSE(v.find("r")->is_int());
  EXPECT_TRUE(v.find("r")->is_number());
  EXPECT_TRUE(v.find("u")->is_number());
  EXPECT_TRUE(v.find("s")->is_string());
  EXPECT_TRUE(v.find("a")->is_array());
  EXPECT_TRUE(v.find("o")->is_object());
  EXPECT_EQ(v.find("u")->type(), JsonValue::Type::unsigned_integer);
}

TEST(JsonValue, GivesCheckedValues) {
  const JsonValue v = sample();
  EXPECT_TRUE(*v.find("t")->as_bool(""));
  EXPECT_EQ(*v.find("i")->as_int(""), -7);
  EXPECT_EQ(*v.find("i")->as_double(""), -7.0);
  EXPECT_EQ(*v.find("u")->as_double(""), 18446744073709551616.0);
  EXPECT_EQ(*v.find("r")->as_double(""), 2.5);
  EXPECT_EQ(*v.find("s")->as_string(""), "x");
}

TEST(JsonValue, SaysWhatItExpectedAndWhatItFound) {
  const JsonValue v = sample();
  expect_error(v.find("n")->as_bool("f: n"), Code::bad_file,
               "f: n: at byte 5: expected true or false, found null");
  expect_error(v.find("u")->as_int("f: u"), Code::bad_file,
               "f: u: at byte 30: expected an integer of 64 bits, found 18446744073709551615");
  expect_error(v.find("r")->as_int("f: r"), Code::bad_file,
               "f: r: at byte 55: expected an integer of 64 bits, found 2.5");
  expect_error(v.find("s")->as_double("f: s"), Code::bad_file,
               "f: s: at byte 63: expected a number, found \"x\"");
  expect_error(v.find("a")->as_string("f: a"), Code::bad_file,
               "f: a: at byte 71: expected a string, found an array");
  expect_error(v.find("o")->as_string("f: o"), Code::bad_file,
               "f: o: at byte 79: expected a string, found an object");
  expect_error(JsonValue::boolean(true).as_double("made"), Code::bad_file,
               "made: expected a number, found true");
}

TEST(JsonValue, ShowsNothingOfAnotherType) {
  const JsonValue v = JsonValue::integer(3);
  EXPECT_EQ(v.text(), "");
  EXPECT_TRUE(v.elements().empty());
  EXPECT_TRUE(v.members().empty());
  EXPECT_EQ(v.find("a"), nullptr);
}

TEST(JsonValue, CopiesDeeplyAndMovesOut) {
  const JsonValue original = sample();
  JsonValue copy = original;
  copy.add("more", JsonValue::string("y"));
  EXPECT_EQ(original.find("more"), nullptr);
  EXPECT_EQ(dump_json(JsonValue(original)), dump_json(original));
  JsonValue moved = std::move(copy);
  EXPECT_EQ(moved.find("more")->text(), "y");
  moved = moved.elements().empty() ? JsonValue::array() : moved;
  EXPECT_TRUE(moved.is_array());
  EXPECT_TRUE(JsonValue(JsonValue::string("")).text().empty());
}

TEST(JsonValue, IsBuiltInCode) {
  JsonValue v = JsonValue::object();
  v.add("list", JsonValue::array({JsonValue::integer(1), JsonValue::real(2)}));
  v.add("flag", JsonValue::boolean(false));
  JsonValue list;  // null becomes what is put into it
  list.push(JsonValue());
  list.push(JsonValue::object({{"k", JsonValue::string("v")}}));
  v.add("more", list);
  EXPECT_EQ(dump_json(v), R"({"list":[1,2.0],"flag":false,"more":[null,{"k":"v"}]})");
}

TEST(JsonValue, DescribesLongStringsShortly) {
  EXPECT_EQ(JsonValue::string("a\nb").describe(), "\"a\\x0ab\"");
  EXPECT_EQ(JsonValue::string(std::string(50, 'x')).describe(),
            "\"" + std::string(40, 'x') + "...\"");
}

TEST(DumpJson, IndentsWhenAsked) {
  const auto v = parse_json(R"({"a":[1,{"b":[]}],"c":{}})", "t");
  ASSERT_TRUE(v.ok());
  EXPECT_EQ(dump_json(*v, 2),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {}\n}");
  EXPECT_EQ(dump_json(*v, 0), "{\n\"a\": [\n1,\n{\n\"b\": []\n}\n],\n\"c\": {}\n}");
}

TEST(DumpJson, PrintsDoublesSoThatTheyComeBackEqual) {
  for (const double v : {0.0, -0.0, 1.0, 0.1, 1.0 / 3.0, 1e15, 1e16, 1e22, 1e-7, 123456789.125,
                         5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1e100}) {
    const std::string text = dump_json(JsonValue::real(v));
    const auto back = parse_json(text, "t");
    ASSERT_TRUE(back.ok()) << text;
    EXPECT_EQ(back->type(), JsonValue::Type::real) << text;
    EXPECT_EQ(*back->as_double(""), v) << text;
    EXPECT_EQ(std::signbit(*back->as_double("")), std::signbit(v)) << text;
  }
}

TEST(DumpJson, ReplacesWhatJsonCannotSay) {
  EXPECT_EQ(dump_json(JsonValue::real(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(dump_json(JsonValue::real(std::nan(""))), "null");
  EXPECT_EQ(dump_json(JsonValue::string("a\xff\xc3z")), "\"a\uFFFD\uFFFDz\"");
}

}  // namespace
}  // namespace loom::core
