// JSON schemas: which texts they allow, what is refused and where, numbers beside trying them all,
// and that whatever is allowed is JSON.
#include "grammar/schemas/json_schema.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "grammar/grammars.hpp"

namespace loom::core::grammar {
namespace {

using testing::HasSubstr;

struct Validity {
  const char* schema;
  std::vector<std::string> in, out;
};

void check_all(const std::vector<Validity>& cases, const SchemaOptions& options = {}) {
  for (const Validity& c : cases) {
    SCOPED_TRACE(c.schema);
    const auto program = test::schema(c.schema, options);
    ASSERT_TRUE(program.ok()) << program.error().str();
    for (const std::string& text : c.in) EXPECT_TRUE(test::fits(*program, text)) << text;
    for (const std::string& text : c.out) EXPECT_FALSE(test::fits(*program, text)) << text;
  }
}

TEST(JsonSchema, AllowsWhatItsTypesSay) {
  check_all({
      {"{}", {"null", "-1.5e3", "[1,{\"a\":[]}]", "\"\\u00e9\\ud83d\\ude00\""}, {"", "nul", "01"}},
      {"true", {"{}"}, {"{"}},
      {R"({"type":"null"})", {"null"}, {"true"}},
      {R"({"type":["boolean","integer"]})", {"true", "-7"}, {"1.5", "null"}},
      {R"({"type":"integer"})", {"0", "-12"}, {"-0", "00", "1.0", "1e3"}},
      {R"({"type":"number"})", {"0.5", "1e-9", "-3"}, {".5", "1.", "+1"}},
      {R"({"type":"string"})",
       {R"("")", R"("é\n")", R"("\ud83d\ude00")"},
       {R"("\ud83d")", R"("\q")", "\"\n\"", "'a'"}},
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {R"("ab")", R"("éé\n")", R"("\ud83d\ude00x")"},
       {R"("a")", R"("abcd")"}},
      {R"({"enum":["a",1,null,{"b":[1.5]}]})", {"\"a\"", "1", "{\"b\":[1.5]}"}, {"2", "\"b\""}},
      {R"({"const":"x"})", {"\"x\""}, {"\"y\""}},
      {R"({"enum":["a",1],"type":"string"})", {"\"a\""}, {"1"}},
  });
}

TEST(JsonSchema, AnnotationsOfPydanticZodAndOpenApiHoldNothing) {
  check_all({
      {R"({"$schema":"s","$anchor":"a","title":"T","type":"integer","example":1,"x-order":3,
          "markdownDescription":"m","errorMessage":"e","externalDocs":{"url":"u"},"xml":{}})",
       {"7"},
       {"\"7\""}},
      {R"({"discriminator":{"propertyName":"k"},"oneOf":[
          {"type":"object","properties":{"k":{"const":"a"}},"required":["k"],
           "additionalProperties":false},
          {"type":"object","properties":{"k":{"const":"b"}},"required":["k"],
           "additionalProperties":false}]})",
       {R"({"k":"a"})", R"({"k":"b"})"},
       {R"({"k":"c"})"}},
  });
}

TEST(JsonSchema, AllowsObjectsInTheirOrder) {
  check_all({
      {R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},
          "c":{"enum":["x"]}},"required":["b"],"additionalProperties":false})",
       {R"({"b":null})", R"({"a":1, "b":null})", R"({"b": null,"c":"x"})",
        "{\n  \"a\": 1,\n  \"b\": null\n}"},
       {R"({})", R"({"a":1})", R"({"b":null,"a":1})", R"({"b":null,"d":1})", R"({"b":null,})"}},
      {R"({"type":"object","properties":{"ab":{"type":"integer"}}})",
       {R"({})", R"({"ab":1,"x":"y"})", R"({"a":true,"abc":[]})"},
       {R"({"ab":"no"})", R"({"x":1,"ab":2})"}},
      {R"({"type":"object","required":["n"],"additionalProperties":{"type":"integer"}})",
       {R"({"n":1})", R"({"n":1,"m":2})"},
       {R"({"m":1})", R"({"n":"x"})"}},
      {R"({"type":"object","additionalProperties":{"type":"null"},"minProperties":1,
          "maxProperties":2})",
       {R"({"a":null})", R"({"a":null,"b":null})"},
       {R"({})", R"({"a":null,"b":null,"c":null})"}},
      {R"({"type":"object","propertyNames":{"pattern":"^[a-z]+$"}})",
       {R"({"abc":1})"},
       {R"({"A":1})", R"({"":1})"}},
      {R"({"type":"object","properties":{"a":false},"additionalProperties":false})",
       {"{}"},
       {R"({"a":1})"}},
  });
}

TEST(JsonSchema, AllowsArraysOfTheirLength) {
  check_all({
      {R"({"type":"array","items":{"type":"integer"}})",
       {"[]", "[1]", "[1, 2]"},
       {"[1,]", "[\"a\"]"}},
      {R"({"type":"array","items":{"type":"null"},"minItems":1,"maxItems":2})",
       {"[null]", "[null,null]"},
       {"[]", "[null,null,null]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"},{"type":"null"}],"items":false})",
       {"[]", "[1]", "[1,null]"},
       {"[null]", "[1,null,1]"}},
      {R"({"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},
          "minItems":2})",
       {"[1,null]", "[1,null,null]"},
       {"[1]", "[1,2]"}},
      {R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"}},
      {R"({"type":"array","items":{"enum":[0]},"minItems":1000,"maxItems":1000000})", {}, {"[0]"}},
  });
}

TEST(JsonSchema, AllowsWhatItsPartsSay) {
  check_all({
      {R"({"anyOf":[{"type":"integer"},{"enum":["a"]}]})", {"1", "\"a\""}, {"\"b\""}},
      {R"({"oneOf":[{"type":"integer"},{"type":"string"}]})", {"1", "\"a\""}, {"null"}},
      {R"({"oneOf":[{"properties":{"k":{"const":1}},"required":["k"],"type":"object",
           "additionalProperties":false},{"properties":{"k":{"const":2},"m":{"type":"null"}},
           "required":["k","m"],"type":"object","additionalProperties":false}]})",
       {R"({"k":1})", R"({"k":2,"m":null})"},
       {R"({"k":2})"}},
      {R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],
           "anyOf":[{"properties":{"b":{"type":"null"}},"required":["b"]},
                    {"properties":{"a":{"maximum":3}}}]})",
       {R"({"a":9,"b":null})", R"({"a":2})"},
       {R"({"a":9})", R"({"b":null})"}},
      {R"({"allOf":[{"type":["integer","string"]},{"type":["integer","null"],"minimum":5}]})",
       {"5", "17"},
       {"4", "\"a\"", "null"}},
      {R"({"allOf":[{"$ref":"#/$defs/a"}],"maximum":3,
          "$defs":{"a":{"type":"integer","minimum":1}}})",
       {"1", "3"},
       {"0", "4"}},
      {R"({"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},
           "kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v","kids"],
           "additionalProperties":false}},"$ref":"#/$defs/tree"})",
       {R"({"v":1,"kids":[{"v":2,"kids":[]},{"v":3,"kids":[{"v":4,"kids":[]}]}]})"},
       {R"({"v":1,"kids":[{"v":2}]})"}},
      {R"({"anyOf":[{"type":"null"},{"type":"array","items":{"$ref":"#"}}]})",
       {"null", "[[null],[]]"},
       {"[1]"}},
  });
}

TEST(JsonSchema, AllowsWhatItsPatternsAndFormatsSay) {
  check_all({
      {R"({"type":"string","pattern":"^[a-c]+\\d{2,3}$"})",
       {R"("ab12")", R"("c123")"},
       {R"("12")", R"("a1")", R"("a1234")"}},
      {R"({"type":"string","pattern":"ab|^c"})", {R"("xxabyy")", R"("cz")"}, {R"("xc")", R"("")"}},
      {R"({"type":"string","pattern":"^(?:a|b)?[^\"\\\\]\\.\\x41\\u0042$"})",
       {R"("ax.AB")", R"("é.AB")"},
       {R"("a\".AB")"}},
      {R"({"type":"string","pattern":"^\\s\"\\\\$"})",
       {R"("\t\"\\")", R"(" \"\\")"},
       {R"("a\"\\")"}},
      {R"({"type":"string","format":"date"})",
       {R"("2024-02-29")", R"("1999-12-31")", R"("2000-02-29")"},
       {R"("2023-02-29")", R"("1900-02-29")", R"("2024-04-31")", R"("2024-13-01")"}},
      {R"({"type":"string","format":"date-time"})",
       {R"("2024-02-29T23:59:59Z")", R"("2024-01-01T00:00:00.25+01:30")"},
       {R"("2024-01-01T24:00:00Z")", R"("2024-01-01 00:00:00Z")"}},
      {R"({"type":"string","format":"uuid"})",
       {R"("123e4567-e89b-12d3-a456-426614174000")"},
       {R"("123e4567e89b12d3a456426614174000")"}},
      {R"({"type":"string","format":"ipv4"})",
       {R"("255.0.10.199")"},
       {R"("256.0.0.1")", R"("1.2.3")"}},
      {R"({"type":"string","format":"duration"})",
       {R"("P1Y2M3DT4H")", R"("PT5M")"},
       {R"("P")", R"("1D")"}},
      {R"({"type":"string","format":"email"})", {R"("a.b@c.de")"}, {R"("a@b")"}},
  });
}

TEST(JsonSchema, ClosedAndCompactAreChoices) {
  SchemaOptions options;
  options.spaces = false;
  options.closed = true;
  check_all({{R"({"type":"object","properties":{"a":{"type":"integer"}}})",
              {R"({"a":1})"},
              {R"({"a": 1})", R"({"b":1})"}}},
            options);
}

TEST(JsonSchema, NumbersLieBetweenTheirBounds) {
  std::mt19937_64 engine(1);
  const auto number = [&]() {
    const int digits = static_cast<int>(engine() % 3);
    const auto units = static_cast<int64_t>(engine() % 40001) - 20000;
    return static_cast<double>(units) / std::pow(10.0, digits);
  };
  const auto text_of = [](double v, int digits) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.*f", digits, v);
    return std::string(buffer);
  };
  int tried = 0;
  for (int i = 0; i < 250; ++i) {
    const bool whole = engine() % 2 == 0, has_low = engine() % 4 > 0, has_high = engine() % 4 > 0;
    double low = number(), high = number();
    if (low > high) std::swap(low, high);
    const bool open_low = engine() % 2 == 0, open_high = engine() % 2 == 0;
    std::string schema = std::string(R"({"type":")") + (whole ? "integer" : "number") + "\"";
    if (has_low)
      schema += std::string(",\"") + (open_low ? "exclusiveMinimum" : "minimum") +
                "\":" + text_of(low, 2);
    if (has_high)
      schema += std::string(",\"") + (open_high ? "exclusiveMaximum" : "maximum") +
                "\":" + text_of(high, 2);
    schema += "}";
    SCOPED_TRACE(schema);
    const auto program = test::schema(schema);
    const auto inside = [&](double v) {
      const bool above = !has_low || (open_low ? v > low : v >= low);
      return above && (!has_high || (open_high ? v < high : v <= high));
    };
    if (!program.ok()) {
      EXPECT_TRUE(has_low && has_high) << program.error().str();
      continue;
    }
    for (int n = 0; n < 60; ++n) {
      const int digits = whole ? 0 : static_cast<int>(engine() % 4);
      double v = engine() % 3 == 0 ? low : engine() % 2 == 0 ? high : number();
      v += (static_cast<double>(engine() % 7) - 3) * std::pow(10.0, -digits);
      const std::string text = text_of(v, digits);
      const double rounded = std::stod(text);
      if (text[0] == '-' && rounded == 0) continue;  // -0 is written 0
      EXPECT_EQ(test::fits(*program, text), inside(rounded)) << text;
      ++tried;
    }
  }
  EXPECT_GT(tried, 10000);
}

TEST(JsonSchema, WhatCannotBeHeldToNamesItsPlace) {
  struct Case {
    const char *schema, *where, *message;
  };
  const Case cases[] = {
      {R"({"properties":{"a":{"not":{}}}})", "#/properties/a/not", "the keyword \"not\""},
      {R"({"if":{},"then":{}})", "#/if", "cannot be held to"},
      {R"({"patternProperties":{}})", "#/patternProperties", "cannot be held to"},
      {R"({"type":"string","nullable":true})", "#/nullable", "the keyword \"nullable\""},
      {R"({"type":"array","uniqueItems":true})", "#/uniqueItems", "items that differ"},
      {R"({"type":"array","items":{"contains":{}}})", "#/items/contains", "\"contains\""},
      {R"({"type":"string","format":"iri"})", "#/format", "there are date, time"},
      {R"x({"type":"string","pattern":"(?=a)"})x", "#/pattern", "look-around"},
      {R"({"type":"string","pattern":"(a)\\1"})", "#/pattern", "a reference to a group"},
      {R"({"type":"string","pattern":"[a"})", "#/pattern", "a [ without a ]"},
      {R"({"type":"string","pattern":"a","minLength":3})", "#/pattern", "beside a length"},
      {R"({"type":"integer","multipleOf":3})", "#/multipleOf", "multiples"},
      {R"({"type":"strin"})", "#/type", "no such type"},
      {R"({"$ref":"https://example.org/a"})", "#/$ref", "leads nowhere"},
      {R"({"$ref":"#/$defs/none"})", "#/$ref", "leads nowhere"},
      {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})", "#/oneOf", "parts 0 and 1"},
      {R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})", "#/allOf", "said twice"},
      {R"({"type":"object","properties":{"a/b":{"minItems":-1}}})", "#/properties/a/b/minItems",
       "an integer"},
      {R"({"type":"object","properties":{"a":{},"b":{}},"maxProperties":1})", "#/maxProperties",
       "cannot be held to"},
      {"[]", "#", "a schema is an object"},
      {"false", "", "no text fits"},
      {R"({"$ref":"#"})", "", "begins with itself"},
      {R"({"type":"array","items":{"$ref":"#"},"minItems":1})", "", "it never ends"},
      {R"({"type":"integer","minimum":5,"maximum":4})", "", "no text fits"},
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/a"}]}}})", "", "without end"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.schema);
    const auto program = test::schema(c.schema);
    ASSERT_FALSE(program.ok());
    EXPECT_THAT(program.error().where, testing::StartsWith(c.where));
    EXPECT_THAT(program.error().message, HasSubstr(c.message));
    EXPECT_EQ(program.error().str().find('\n'), std::string::npos);
  }
}

TEST(JsonSchema, UnionsOfSchemasAreOneGrammar) {
  Builder b;
  const ExprId one = *add_json_schema(b, *parse_json(R"({"type":"integer"})", "a"));
  const ExprId two = *add_json_schema(b, *parse_json(R"({"type":"null"})", "b"));
  const auto program = Program::compile(
      b, b.free_text({{"<tool>", b.sequence({b.choice({one, two}), b.literal("</tool>")})}}, true));
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(test::fits(*program, "I ask: <tool>17</tool> and <tool>null</tool>."));
  EXPECT_FALSE(test::fits(*program, "I ask: <tool>1.5</tool>"));
}

}  // namespace
}  // namespace loom::core::grammar
