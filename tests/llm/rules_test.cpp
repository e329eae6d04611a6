// Grammars and schemas without a model: check_rules(), which the program calls for files.
#include <gmock/gmock.h>

#include "loom/generation.hpp"
#include "loom/result.hpp"

namespace loom {
namespace {

TEST(CheckRules, TellsWhetherAGrammarHoldsATextAndWhy) {
  const struct {
    const char* grammar;
    const char* error;  // empty means none
  } rows[] = {{"", ""},
              {"root ::= \"a\" [b-d]*", ""},
              {"root ::= \"a", "the line ends inside of a literal"},
              {"root ::= missing", "names the rule missing"},
              {"root ::= root \"a\"", "begins with itself"},
              {"\xff\xfe", "is not UTF-8"}};
  for (const auto& row : rows) {
    GenerateOptions options;
    options.grammar = row.grammar;
    const Status status = check_rules(options);
    EXPECT_EQ(status.ok(), row.error[0] == '\0') << row.grammar;
    if (status.ok()) continue;
    EXPECT_THAT(status.error().message, testing::HasSubstr(row.error));
  }
}

TEST(CheckRules, TellsWhetherASchemaHoldsATextAndWhy) {
  const std::pair<const char*, const char*> rows[] = {
      {"{\"type\": \"integer\"}", ""},
      {"{\"type\": \"obj", "a string that never ends"},
      {"{\"type\": \"nonsense\"}", "no such type"},
      {"{\"type\": \"string\", \"pattern\": \"((\"}", "without a )"}};
  for (const auto& [schema, error] : rows) {
    GenerateOptions options;
    options.json_schema = schema;
    const Status status = check_rules(options);
    EXPECT_EQ(status.ok(), error[0] == '\0') << schema;
    if (status.ok()) continue;
    EXPECT_THAT(status.error().message, testing::HasSubstr(error));
  }
}

// 1,000 damaged texts of each kind: valid, or an error with exit code 3 or 4.
TEST(CheckRules, RandomDamageIsAnErrorOfTheText) {
  const std::string grammar =
      "root ::= item (\",\" item)*\nitem ::= [a-z]+ | \"x\" [0-9]{1,3}|word\n"
      "word ::= \"the\"? [^\\n\\\"]+\n";
  const std::string schema =
      R"({"type":"object","properties":{"a":{"type":"integer","minimum":1},)"
      R"("b":{"enum":["x",null]},)"
      R"("c":{"type":"array","items":{"$ref":"#/$defs/d"}}},"required":["a"],)"
      R"("$defs":{"d":{"type":"string","pattern":"^[a-c]{2,4}(x|y)?$"}}})";
  uint64_t state = 33;
  const auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = i % 2 == 0 ? grammar : schema;
    switch (draw(4)) {
      case 0: text.resize(1 + draw(text.size() - 1)); break;
      case 1: text[draw(text.size())] ^= static_cast<char>(1 + draw(255)); break;
      case 2: text.erase(draw(text.size()), 1 + draw(4)); break;
      default: text.replace(draw(text.size()), 3, std::string(3, '\0')); break;
    }
    GenerateOptions options;
    (i % 2 == 0 ? options.grammar : options.json_schema) = text;
    const Status status = check_rules(options);
    if (status.ok()) continue;
    ++refused;
    const Code code = status.error().code;
    EXPECT_TRUE(code == Code::invalid_argument || code == Code::bad_file ||
                code == Code::unsupported || code == Code::out_of_range)
        << code_name(code) << ": " << status.error().message;
    EXPECT_EQ(status.error().message.find('\n'), std::string::npos) << status.error().message;
  }
  EXPECT_GT(refused, 800);
}

}  // namespace
}  // namespace loom
