// Grammars and schemas before there is a model: check_rules(), which the program asks about files.
#include <gmock/gmock.h>

#include "loom/generation.hpp"
#include "loom/result.hpp"

namespace loom {
namespace {

TEST(CheckRules, TellsWhetherAGrammarHoldsATextAndWhy) {
  const struct {
    const char* grammar;
    const char* error;  // "": none
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
    if (!status.ok()) EXPECT_THAT(status.error().message, testing::HasSubstr(row.error));
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
    if (!status.ok()) EXPECT_THAT(status.error().message, testing::HasSubstr(error));
  }
}

}  // namespace
}  // namespace loom
