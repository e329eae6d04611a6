// parse_json: accepted texts, refusals with their messages and offsets, and its limits.
#include "io/json/json.hpp"

#include "base/processor_time.hpp"
#include "base/text.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::expect_error;

struct Accepted {
  std::string text;
  std::string dumped;
};

void check_json_accepts(const Accepted& row) {
  const auto value = parse_json(row.text, "t");
  ASSERT_TRUE(value.ok()) << value.error().str();
  EXPECT_EQ(dump_json(*value), row.dumped);
}

const std::vector<Accepted> kJsonAccepts = {
    {"null", "null"},
    {" true ", "true"},
    {"\t\r\nfalse\n", "false"},
    {"0", "0"},
    {"-0", "0"},
    {"-12", "-12"},
    {"9223372036854775807", "9223372036854775807"},
    {"-9223372036854775808", "-9223372036854775808"},
    {"18446744073709551615", "18446744073709551615"},
    // Above 64 bits an integer is a real, as in tokenizer_config.json's model_max_length.
    {"1000000000000000019884624838656", "1e+30"},
    {"1.0", "1.0"},
    {"-0.0", "-0.0"},
    {"1e3", "1000.0"},
    {"1E+3", "1000.0"},
    {"0.1", "0.1"},
    {"1e-05", "1e-05"},
    {"5e-324", "5e-324"},
    {"1e-999", "0.0"},
    {"1.7976931348623157e308", "1.7976931348623157e+308"},
    {"\"\"", "\"\""},
    {R"("a\"\\\/\b\f\n\r\t")", R"("a\"\\/\u0008\u000c\n\r\t")"},
    {R"("\u00e9\u20ac\ud83d\ude00")", "\"\u00e9\u20ac\U0001f600\""},
    {"\"\u00e9\u20ac\U0001f600\"", "\"\u00e9\u20ac\U0001f600\""},
    {R"("\u0000\u001f")", R"("\u0000\u001f")"},
    {"\"\x7f\"", "\"\x7f\""},
    {"[]", "[]"},
    {"[ ]", "[]"},
    {"[1, [2, []], {}]", "[1,[2,[]],{}]"},
    {"{}", "{}"},
    {R"({ "b" : 1 , "a" : { "b" : [ 2 ] } })", R"({"b":1,"a":{"b":[2]}})"},
    {R"({"":null,"a":true})", R"({"":null,"a":true})"},
};

TEST(JsonAccepts, EveryKindOfValueAndDumpsTheSame) {
  for (const Accepted& row : kJsonAccepts) check_json_accepts(row);
}

struct Refused {
  std::string text;
  std::string error;
};

void check_json_refuses(const Refused& row) {
  expect_error(parse_json(row.text, "t"), Code::bad_file, "t: " + row.error);
}

std::string nul(std::string_view before, std::string_view after = {}) {
  return std::string(before).append(1, '\0').append(after);
}

const std::vector<Refused> kStructure = {
    {"", "at byte 0: expected a value, found the end of the text"},
    {"  ", "at byte 2: expected a value, found the end of the text"},
    {"}", "at byte 0: expected a value, found '}'"},
    {",", "at byte 0: expected a value, found ','"},
    {"1 2", "at byte 2: expected the end of the text, found '2'"},
    {"01", "at byte 1: expected the end of the text, found '1'"},
    {"1-2", "at byte 1: expected the end of the text, found '-'"},
    {"{} x", "at byte 3: expected the end of the text, found 'x'"},
    {"\"a\" \"b\"", "at byte 4: expected the end of the text, found a string"},
    {"[", "at byte 1: expected a value or ']', found the end of the text"},
    {"[1", "at byte 2: expected ',' or ']', found the end of the text"},
    {"[1 2]", "at byte 3: expected ',' or ']', found '2'"},
    {"[1-2]", "at byte 2: expected ',' or ']', found '-'"},
    {"[1}", "at byte 2: expected ',' or ']', found '}'"},
    {"[1,]", "at byte 3: expected a value after ',', found ']'"},
    {"[,1]", "at byte 1: expected a value or ']', found ','"},
    {"[1,,2]", "at byte 3: expected a value after ',', found ','"},
    {"[[1]", "at byte 4: expected ',' or ']', found the end of the text"},
    {"[1]]", "at byte 3: expected the end of the text, found ']'"},
    {"{", "at byte 1: expected a key or '}', found the end of the text"},
    {"{1:2}", "at byte 1: expected a key or '}', found '1'"},
    {"{a:2}", "at byte 1: expected a key or '}', found 'a'"},
    {"{\"a\"}", "at byte 4: expected ':' after a key, found '}'"},
    {"{\"a\" 1}", "at byte 5: expected ':' after a key, found '1'"},
    {"{\"a\":}", "at byte 5: expected a value, found '}'"},
    {"{\"a\":1 \"b\":2}", "at byte 7: expected ',' or '}', found a string"},
    {"{\"a\":1,}", "at byte 7: expected a key after ',', found '}'"},
    {"{\"a\":1,2}", "at byte 7: expected a key after ',', found '2'"},
    {"{\"a\":[1}", "at byte 7: expected ',' or ']', found '}'"},
    {"[1] // note", "at byte 4: expected the end of the text, found '/'"},
    {"/* */ 1", "at byte 0: expected a value, found '/'"},
    {nul("1"), "at byte 1: expected the end of the text, found byte 0x00"},
    {nul("{}", "{}"), "at byte 2: expected the end of the text, found byte 0x00"},
    {nul("[1"), "at byte 2: expected ',' or ']', found byte 0x00"},
    {nul(""), "at byte 0: expected a value, found byte 0x00"},
    {"\xEF\xBB\xBF{}", "at byte 0: starts with a byte order mark; save it as plain UTF-8"},
    {"\xEF{}", "at byte 0: expected a value, found byte 0xef"},
    {"\f1", "at byte 0: expected a value, found byte 0x0c"},
};

TEST(JsonRefuses, BrokenStructure) {
  for (const Refused& row : kStructure) check_json_refuses(row);
}

const std::vector<Refused> kWords = {
    {"nul", "at byte 0: expected a value, found 'nul'"},
    {"nulll", "at byte 4: expected the end of the text, found 'l'"},
    {"True", "at byte 0: expected a value, found 'True'"},
    {"[NaN]", "at byte 1: expected a value or ']', found 'NaN'"},
    {"Infinity", "at byte 0: expected a value, found 'Infinity'"},
    {"'a'", "at byte 0: expected a value, found '''"},
    {"a_word_longer_than_16", "at byte 0: expected a value, found 'a_word_longer_th'"},
};

TEST(JsonRefuses, UnknownWords) {
  for (const Refused& row : kWords) check_json_refuses(row);
}

const std::vector<Refused> kNumbers = {
    {"-", "at byte 1: expected a digit after '-', found the end of the text"},
    {"-a", "at byte 1: expected a digit after '-', found 'a'"},
    {"-Infinity", "at byte 1: expected a digit after '-', found 'Infinity'"},
    {"+1", "at byte 0: expected a value, found '+'"},
    {".5", "at byte 0: expected a value, found '.'"},
    {"[1.]", "at byte 3: expected a digit after '.', found ']'"},
    {"1e", "at byte 2: expected a digit after 'e', found the end of the text"},
    {"1.5E+x", "at byte 5: expected a digit after 'e', found 'x'"},
    {"0x10", "at byte 1: expected the end of the text, found 'x10'"},
    {"[1, 1e999]", "at byte 4: this number is too large for a 64-bit real"},
    {"-1e999", "at byte 0: this number is too large for a 64-bit real"},
};

TEST(JsonRefuses, BrokenNumbers) {
  for (const Refused& row : kNumbers) check_json_refuses(row);
}

const std::vector<Refused> kStrings = {
    {"\"abc", "at byte 0: a string that never ends"},
    {"[\"a\\\"", "at byte 1: a string that never ends"},
    {"{\"a", "at byte 1: a string that never ends"},
    {"{\"a\":1,\"b", "at byte 7: a string that never ends"},
    {"\"a\nb\"", "at byte 2: byte 0x0a inside a string; it must be escaped"},
    {nul("\"a", "b\""), "at byte 2: byte 0x00 inside a string; it must be escaped"},
    {"\"\\x41\"",
     "at byte 1: bad escape in a string; JSON has \\\" \\\\ \\/ \\b \\f \\n \\r \\t "
     "\\uXXXX"},
    {"\"\\u12g4\"", "at byte 1: expected four hex digits after \\u"},
    {"\"\\u12", "at byte 1: expected four hex digits after \\u"},
    {"\"\\ud800\"", "at byte 1: unpaired surrogate in a string"},
    {"\"\\ud800\\u0041\"", "at byte 1: unpaired surrogate in a string"},
    {"\"\\ud800x\"", "at byte 1: unpaired surrogate in a string"},
    {"\"ab\\udc00\"", "at byte 3: unpaired surrogate in a string"},
    {"\"a\xff\"", "at byte 2: invalid UTF-8 in a string: byte 0xff"},
    {"\"\x80\"", "at byte 1: invalid UTF-8 in a string: byte 0x80"},
    {"\"\xc0\x80\"", "at byte 1: invalid UTF-8 in a string: byte 0xc0"},
    {"\"\xc3\"", "at byte 1: invalid UTF-8 in a string: byte 0xc3"},
    {"\"\xe0\x80\x80\"", "at byte 1: invalid UTF-8 in a string: byte 0xe0"},
    {"\"\xed\xa0\x80\"", "at byte 1: invalid UTF-8 in a string: byte 0xed"},
    {"\"\xf0\x80\x80\x80\"", "at byte 1: invalid UTF-8 in a string: byte 0xf0"},
    {"\"\xf4\x90\x80\x80\"", "at byte 1: invalid UTF-8 in a string: byte 0xf4"},
    {"\"\xf5\x80\x80\x80\"", "at byte 1: invalid UTF-8 in a string: byte 0xf5"},
};

TEST(JsonRefuses, BrokenStrings) {
  for (const Refused& row : kStrings) check_json_refuses(row);
}

const std::vector<Refused> kDuplicateKeys = {
    {R"({"a":1,"a":2})", "at byte 7: duplicate key \"a\""},
    {R"({"a":1, "b":{"a":1}, "\u0061":2})", "at byte 21: duplicate key \"a\""},
    {R"([{"x":{"k":[],"k":[]}}])", "at byte 14: duplicate key \"k\""},
    {R"({"":1,"":2})", "at byte 6: duplicate key \"\""},
};

TEST(JsonRefuses, DuplicateKeys) {
  for (const Refused& row : kDuplicateKeys) check_json_refuses(row);
}

TEST(Json, FindsTheDuplicateAmongManyKeysWhereverItIs) {
  for (const int count : {15, 16, 17, 18, 33, 1000, 5000}) {
    for (const int repeated : {0, 1, count / 2, count - 1}) {
      std::string text = "{";
      for (int i = 0; i < count; ++i) text += cat("\"key number ", i, "\":", i, ",");
      ASSERT_TRUE(parse_json(text + "\"x\":{}}", "t").ok()) << count;
      const size_t at = text.size();
      const auto bad = parse_json(text + cat("\"key number ", repeated, "\":0}"), "t");
      expect_error(bad, Code::bad_file,
                   cat("t: at byte ", at, ": duplicate key \"key number ", repeated, "\""));
    }
  }
}

TEST(Json, ReadsAVocabularyInLinearTime) {
  const auto seconds_of = [](int keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += cat("\"token ", i, "\":", i, ",");
    text += "\"last\":0}";
    return test::processor_seconds([&] {
      const auto value = parse_json(text, "t");
      EXPECT_TRUE(value.ok());
      EXPECT_EQ(value->members().size(), static_cast<size_t>(keys) + 1);
    });
  };
  seconds_of(1000);
  // A quadratic check of 200,000 keys would take a minute; this one takes a tenth of a second.
  EXPECT_LT(seconds_of(200'000), 20.0);
}

TEST(Json, KeepsTheOrderAndTheOffsetsOfValues) {
  const std::string text = R"( {"b": [10, -2.5e3 ,"x\n" ] , "a":{ }, "c" : null})";
  const auto value = parse_json(text, "t");
  ASSERT_TRUE(value.ok()) << value.error().str();
  EXPECT_EQ(value->offset(), 1);
  ASSERT_EQ(value->members().size(), 3u);
  EXPECT_EQ(value->members()[0].first, "b");
  const auto& b = *value->find("b");
  EXPECT_EQ(text[static_cast<size_t>(b.offset())], '[');
  EXPECT_EQ(text.substr(static_cast<size_t>(b.elements()[0].offset()), 2), "10");
  EXPECT_EQ(text.substr(static_cast<size_t>(b.elements()[1].offset()), 6), "-2.5e3");
  EXPECT_EQ(text.substr(static_cast<size_t>(b.elements()[2].offset()), 5), R"("x\n")");
  EXPECT_EQ(text.substr(static_cast<size_t>(value->find("a")->offset()), 3), "{ }");
  EXPECT_EQ(text.substr(static_cast<size_t>(value->find("c")->offset()), 4), "null");
  EXPECT_EQ(value->find("d"), nullptr);
  EXPECT_EQ(JsonValue::integer(1).offset(), -1);
}

TEST(Json, LimitsDepth) {
  JsonLimits limits;
  limits.max_depth = 3;
  EXPECT_TRUE(parse_json("[[[]]]", "t", limits).ok());
  EXPECT_TRUE(parse_json("[[[1]],[[{}]]]", "t", {1000, 4}).ok());
  expect_error(parse_json("[[[ []]]]", "t", limits), Code::bad_file,
               "t: at byte 4: nested deeper than 3 levels");
  expect_error(parse_json(R"({"a":{"b":{"c":{}}}})", "t", limits), Code::bad_file,
               "t: at byte 15: nested deeper than 3 levels");
  const std::string deep(1'000'000, '[');
  expect_error(parse_json(deep, "t"), Code::bad_file,
               "t: at byte 64: nested deeper than 64 levels");
}

TEST(Json, LimitsSize) {
  EXPECT_TRUE(parse_json("[1,2]", "t", {5, 64}).ok());
  expect_error(parse_json("[1,2]", "t", {4, 64}), Code::bad_file,
               "t: 5 bytes of JSON; the limit is 4");
}

TEST(Json, LimitsMemory) {
  // One array per four bytes of text would take more than 64 MB + 16 x the text.
  std::string text = "[";
  while (text.size() < (size_t{8} << 20)) text += "[0],";
  text += "0]";
  const auto value = parse_json(text, "t");
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().message,
            "so many values in so little text; refused to keep memory bounded");
  // Ordinary texts of that size pass.
  std::string ordinary = "[";
  while (ordinary.size() < (size_t{4} << 20)) ordinary += "[\"first\",\"second\"],";
  EXPECT_TRUE(parse_json(ordinary + "0]", "t").ok());
}

}  // namespace
}  // namespace loom::core
