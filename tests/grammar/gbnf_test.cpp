// GBNF: which texts a grammar allows, and what is refused with which message.
#include "grammar/gbnf.hpp"

#include <gmock/gmock.h>

#include "grammar/grammars.hpp"

namespace loom::core::grammar {
namespace {

using testing::HasSubstr;

struct Language {
  const char* grammar;
  std::vector<std::string> in, out;
};

TEST(Gbnf, AllowsTheTextsOfItsLanguage) {
  const std::string large(2000, 'a');
  const Language cases[] = {
      {"root ::= \"a\" \"b\"", {"ab"}, {"", "a", "abc", "ba"}},
      {"root ::= \"a\" | \"b\" | \"\"", {"a", "b", ""}, {"ab", "c"}},
      {"root ::= [a-c]+ [^x] .", {"abzé", "a\nz"}, {"ax", "abx!"}},
      {"root ::= \"\\x41\\u00e9\\U0001F600\\n\\\"\\\\\"", {"Aé😀\n\"\\"}, {"A"}},
      {"root ::= [\\]\\-^\\x41]*", {"]-^A", ""}, {"B"}},
      {"root ::= [a-]+", {"a-", "-"}, {"b"}},
      {"root ::= item{3}\nitem ::= \"x\"", {"xxx"}, {"xx", "xxxx"}},
      {"root ::= \"x\"{2,}", {"xx", "xxxxxx"}, {"x"}},
      {"root ::= \"x\"{,2}", {"", "xx"}, {"xxx"}},
      {"root ::= \"a\"{1999,2000}", {large, large.substr(1)}, {large + "a", large.substr(2)}},
      {"root ::= (\"ab\" | \"c\"){2,3} # two or three\n", {"abc", "ccc", "ababab"}, {"ab", "cccc"}},
      {"# balanced\nroot ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "())"}},
      {"root ::= a |\n  b\na ::= (\n \"x\"\n \"y\" )\nb ::=\n \"z\"", {"xy", "z"}, {"x"}},
      {"root ::= (\"a\"?)*", {"", "aaa"}, {"b"}},
      {"root ::= (\"a\"?){2,5}", {"", "aaaaa"}, {"aaaaaa"}},
      {"root ::= \"a\"*?", {"", "aa"}, {"b"}},
      {"root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
       {"1", "1+(2+33)"},
       {"1+", "(1"}},
      {"root ::= [^\"\\\\\\x00-\\x1F]", {"é", "\xF0\x9F\x98\x80", " "}, {"\"", "\n", "\xC3"}},
  };
  for (const Language& c : cases) {
    SCOPED_TRACE(c.grammar);
    const auto program = test::gbnf(c.grammar);
    ASSERT_TRUE(program.ok()) << program.error().str();
    for (const std::string& text : c.in)
      EXPECT_TRUE(test::fits(*program, text)) << text.substr(0, 20);
    for (const std::string& text : c.out)
      EXPECT_FALSE(test::fits(*program, text)) << text.substr(0, 20);
  }
}

TEST(Gbnf, RefusesInOneLine) {
  struct Case {
    const char *grammar, *message;
  };
  const Case cases[] = {
      {"", "no rule named root"},
      {"a ::= \"x\"", "no rule named root"},
      {"root ::= a", "names the rule a"},
      {"root ::= \"a", "line 1, column 12: the line ends"},
      {"root ::= [a", "the line ends inside"},
      {"root ::= (\"a\"", "a ) was expected"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 10: the rule root is there already"},
      {"root = \"a\"", "::= was expected"},
      {"root ::= \"a\"{3,2}", "below the first"},
      {"root ::= \"a\"{9999999}", "up to 1048576 times"},
      {"root ::= \"\\q\"", "unknown escape"},
      {"root ::= \"\\uD800\"", "no such character"},
      {"root ::= [z-a]", "ends before it begins"},
      {"root ::= $", "begins nothing"},
      {"root ::= root \"a\" | \"b\"", "the rule root begins with itself"},
      {"root ::= a\na ::= \"\" b\nb ::= c? a \"x\"\nc ::= \"y\"", "begins with itself"},
      {"root ::= \"a\" root", "it never ends"},
      {"root ::= (\"a\"?){1,5000}", "may be empty"},
      {"root ::= \"\xFF\"", "not UTF-8"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.grammar);
    const auto program = test::gbnf(c.grammar);
    ASSERT_FALSE(program.ok());
    EXPECT_THAT(program.error().str(), HasSubstr(c.message));
    EXPECT_EQ(program.error().str().find('\n'), std::string::npos);
  }
}

TEST(Gbnf, NestingIsBounded) {
  std::string deep = "root ::= ";
  for (int i = 0; i < 100000; ++i) deep += '(';
  EXPECT_THAT(test::gbnf(deep).error().str(), HasSubstr("nested too deep"));
}

// Features that GBNF itself lacks: schemas, and text up to a mark.
TEST(Gbnf, SchemasAndFreeTextStandInGrammars) {
  struct Case {
    const char *grammar, *text;
    bool fits;
  };
  const Case cases[] = {
      {"root ::= \"<\" %json {\"type\":\"integer\"} \">\"", "<12>", true},
      {"root ::= \"<\" %json {\"type\":\"integer\"} \">\"", "<a>", false},
      {"root ::= (%json {\"const\":\"}\\\"\"} \";\")+", "\"}\\\"\";\"}\\\"\";", true},
      {"root ::= %json true \"!\"", "[1]!", true},
      {"root ::= %json {\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"const\":1}}} | \"x\"", "1",
       true},
      {"root ::= %until \"</a>\" \"b\"", "any <</a>b", true},
      {"root ::= %until \"</a>\" \"b\"", "any </a></a>b", false},
      {"root ::= %until \"</a>\" \"b\"", "any ", false},
      {"root ::= %text (\"<f>\" [0-9] | \"<g>\" \"x\")", "so", true},
      {"root ::= %text (\"<f>\" [0-9] | \"<g>\" \"x\")", "so <f>3", true},
      {"root ::= %text (\"<f>\" [0-9] | \"<g>\" \"x\")", "so <f>x", false},
      {"root ::= %text (\"<f>\" [0-9] | \"<g>\" \"x\")", "so <f>3<g>x", false},
      {"root ::= %text* (\"<f>\" [0-9] | \"<g>\" \"x\")", "so <f>3 or <g>x.", true},
  };
  for (const Case& c : cases) {
    const auto program = test::gbnf(c.grammar);
    ASSERT_TRUE(program.ok()) << c.grammar << program.error().str();
    EXPECT_EQ(test::fits(*program, c.text), c.fits) << c.grammar << " " << c.text;
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"root ::= %jso 1", "after % there may be json, until or text"},
      {"root ::= %json {\"type\":", "the schema"},
      {"root ::= %json {\"not\":{}}", "#/not"},
      {"root ::= %until \"\"", "an empty literal begins everywhere"},
      {"root ::= %until a", "a literal was expected"},
      {"root ::= %text (\"a\"", "a ) was expected"},
  };
  for (const auto& [grammar, message] : wrong) {
    const auto program = test::gbnf(grammar);
    ASSERT_FALSE(program.ok()) << grammar;
    EXPECT_NE(program.error().str().find(message), std::string::npos) << program.error().str();
  }
}

}  // namespace
}  // namespace loom::core::grammar
