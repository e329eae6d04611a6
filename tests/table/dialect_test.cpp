// Dialects of tables, and encodings of their text.
#include "table/dialect.hpp"

#include "table/text_source.hpp"
#include "table_testing.hpp"

namespace loom::core {
namespace {

struct DialectCase {
  const char* text;
  char separator, decimal, thousands;
  bool header;
};

TEST(Dialects, AreFoundFromTheText) {
  const DialectCase cases[] = {
      {"a,b\n1,2\n", ',', '.', '\0', true},
      {"a;b\n1,5;2,5\n", ';', ',', '\0', true},
      {"a;b\n1.234,5;2\n", ';', ',', '.', true},
      {"a\tb\n1\t2\n", '\t', '.', '\0', true},
      {"a|b|c\n1|2|x,y\n", '|', '.', '\0', true},
      {"a,b\n\"1,234.5\",2\n\"7,000\",3\n", ',', '.', ',', true},
      {"a;b\n1.5;2\n", ';', '.', '\0', true},
      {"1,2\n3,4\n", ',', '.', '\0', false},
      {"x,y\nu,v\nx,z\n", ',', '.', '\0', false},
      {"x,y\nu,v\nw,z\n", ',', '.', '\0', true},
      {"\xEF\xBB\xBF"
       "a,b\n1,2\n",
       ',', '.', '\0', true},
      {"name,text\nx,\"a;b;c\"\ny,\"d;e\"\n", ',', '.', '\0', true},
      {"a\n1\n2\n", ',', '.', '\0', true},
      {"sep=;\na;b\n1;2\n", ';', '.', '\0', true},
      {"#id,b\n1,2\n", ',', '.', '\0', true},
  };
  for (const DialectCase& c : cases) {
    const Dialect d = find_dialect(c.text, true, {}).or_exit();
    EXPECT_EQ(d.form.separator, c.separator) << c.text;
    EXPECT_EQ(d.numbers.decimal, c.decimal) << c.text;
    EXPECT_EQ(d.numbers.thousands, c.thousands) << c.text;
    EXPECT_EQ(d.header, c.header) << c.text;
  }
}

TEST(Dialects, EachPartCanBeSet) {
  const Dialect d =
      find_dialect("1,5;2\n", true, {.separator = ";", .decimal = ",", .header = false}).or_exit();
  EXPECT_EQ(d.form.separator, ';');
  EXPECT_EQ(d.numbers.decimal, ',');
  EXPECT_FALSE(d.header);
  EXPECT_EQ(find_dialect("a", true, {.separator = "tab"})->form.separator, '\t');
  EXPECT_FALSE(find_dialect("a", true, {.separator = "::"}).ok());
  EXPECT_FALSE(find_dialect("a", true, {.decimal = ";"}).ok());
}

TEST(Dialects, AFirstRowWithANamedColumnIsAHeader) {
  EXPECT_TRUE(find_dialect("x,price\nx,price\n", true, {.names = {"price"}})->header);
}

TEST(Dialects, AColumnByNumberSaysNothingAboutTheHeader) {
  EXPECT_FALSE(find_dialect("1,2\n3,4\n", true, {.names = {"2"}})->header);
}

TEST(Dialects, NumbersThatBothFormsReadAreAsInTraining) {
  const DialectOptions german{.usual = NumberForm{',', '.'}};
  EXPECT_EQ(find_dialect("a;b\n1.234;x\n", true, german)->numbers.decimal, ',');
  EXPECT_EQ(find_dialect("a;b\n1.5;x\n", true, german)->numbers.decimal, '.');
}

TEST(Dialects, ALineOfASpreadsheetNamesTheSeparator) {
  const Table table = table_of("sep=;\na;b\n1;2,5\n3;4,5\n").or_exit();
  EXPECT_EQ(table.names(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table.columns[1].values, (std::vector<double>{2.5, 4.5}));
}

TEST(Dialects, LinesOfEveryProgramGiveTheSameTable) {
  for (const char* text : {"a,b\n1,x\n2,y\n", "a,b\r\n1,x\r\n2,y\r\n", "a,b\r1,x\r2,y\r",
                           "a,b\n1,x\n\n2,y", "#made by\n#a tool\na,b\n1,x\n# more\n2,y\n",
                           "a,b\n1,\"x\"\n2,\"y\"\n", "a,b,\n1,x,\n2,y,\n"}) {
    const Table table = table_of(text).or_exit();
    ASSERT_EQ(table.rows, 2) << text;
    EXPECT_EQ(table.columns[0].values, (std::vector<double>{1, 2})) << text;
    EXPECT_EQ(table.columns[1].levels, (std::vector<std::string>{"x", "y"})) << text;
  }
}

TEST(Dialects, QuotesAreDoubledOrEscaped) {
  for (const char* text :
       {"a,b\n1,\"say \"\"hi\"\", you\"\n2,z\n", "a,b\n1,\"say \\\"hi\\\", you\"\n2,z\n"}) {
    const Table table = table_of(text).or_exit();
    EXPECT_EQ(table.columns[1].levels[0], "say \"hi\", you") << text;
  }
}

TEST(Dialects, TextOfOtherEncodingsBecomesUtf8WithANote) {
  struct Case {
    std::string bytes;
    std::string_view note;
  };
  const auto wide = [](bool big, bool mark) {
    std::string out = !mark ? "" : big ? "\xFE\xFF" : "\xFF\xFE";
    for (const char16_t c : std::u16string_view(u"a,b\n1,Köln\n2,😀\n")) {
      const char low = static_cast<char>(c & 0xFF), high = static_cast<char>(c >> 8);
      out += big ? high : low;
      out += big ? low : high;
    }
    return out;
  };
  for (const Case& c : {Case{wide(false, true), "UTF-16"}, Case{wide(true, true), "UTF-16"},
                        Case{"a,b\n1,K\xC3\xB6ln\n2,\xF0\x9F\x98\x80\n", ""}}) {
    const Table table = table_of(c.bytes).or_exit();
    EXPECT_EQ(table.columns[1].levels[0], "K\xC3\xB6ln");
    EXPECT_EQ(table.columns[1].levels[1], "\xF0\x9F\x98\x80");
    EXPECT_EQ(mentions(table.notes, "UTF-16"), !c.note.empty());
  }
  const Table latin = table_of("a,b\n1,K\xF6ln\n2,\x80\n").or_exit();
  EXPECT_TRUE(mentions(latin.notes, "Latin-1"));
  EXPECT_TRUE(std::ranges::count(latin.columns[1].levels, "K\xC3\xB6ln") == 1);
  EXPECT_TRUE(std::ranges::count(latin.columns[1].levels, "\xE2\x82\xAC") == 1);  // the euro
  TableReading strict;
  strict.dialect.encoding = "utf-8";
  EXPECT_FALSE(table_of("a,b\n1,K\xF6ln\n", strict).ok());
  EXPECT_FALSE(table_of(wide(false, true) + "x").ok());
}

}  // namespace
}  // namespace loom::core
