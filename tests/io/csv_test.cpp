// CSV tables: separators, quotes, headers, and what is wrong by row and column.
#include "io/csv.hpp"

#include <gmock/gmock.h>

#include "io/io_testing.hpp"

namespace loom {
namespace {

using test::expect_error;
using ::testing::ElementsAre;

TEST(Csv, ReadsEverySeparatorAndBothLineBreaks) {
  for (const std::string text : {"1,2\n3,4\n", "1;2\r\n3;4", "1\t2\n\n3\t4\n\n"}) {
    const Result<CsvTable> table = CsvTable::parse(text, "f");
    ASSERT_TRUE(table.ok()) << table.error().str();
    EXPECT_EQ(table->rows(), 2) << text;
    EXPECT_EQ(table->cols(), 2);
    EXPECT_EQ(*table->number(1, 0), 3.0f);
    EXPECT_TRUE(table->header().empty());
  }
}

TEST(Csv, FindsTheHeaderAndKeepsTextLabels) {
  const Result<CsvTable> table = CsvTable::parse(
      "\xEF\xBB\xBF\"a \"\"b\"\"\",kind\n+1.5e0,\"x, y\"\n-2,\"line\nbreak\"\n", "f");
  ASSERT_TRUE(table.ok()) << table.error().str();
  EXPECT_THAT(table->header(), ElementsAre("a \"b\"", "kind"));
  EXPECT_EQ(table->rows(), 2);
  EXPECT_EQ(*table->number(0, 0), 1.5f);
  EXPECT_EQ(table->cell(0, 1), "x, y");
  EXPECT_EQ(table->cell(1, 1), "line\nbreak");
  EXPECT_TRUE(table->is_numeric(0));
  EXPECT_FALSE(table->is_numeric(1));
  const Result<CsvTable> bare = CsvTable::parse("1,cat\n2,dog\n", "f");
  EXPECT_TRUE(bare->header().empty());
  EXPECT_EQ(bare->rows(), 2);
}

TEST(Csv, NamesRowAndColumnOfWhatIsWrong) {
  const Result<CsvTable> table = CsvTable::parse("a,b\n1,2\n3,oops\nnan,1e99\n", "f");
  ASSERT_TRUE(table.ok()) << table.error().str();
  expect_error(table->number(1, 1), Code::bad_file,
               "f: at byte 10: row 2, column 'b': 'oops' is no number");
  expect_error(table->number(2, 0), Code::bad_file,
               "f: at byte 15: row 3, column 'a': the value is not finite");
  expect_error(table->number(2, 1), Code::bad_file,
               "f: at byte 19: row 3, column 'b': the value is not finite");
  expect_error(CsvTable::parse("1,2\n3\n", "f"), Code::bad_file,
               "f: at byte 4: a row of 1 cells, the first row has 2");
  expect_error(CsvTable::parse("1,\"2\n", "f"), Code::bad_file,
               "f: at byte 2: a quoted field is never closed");
  expect_error(CsvTable::parse("1,\"2\"3\n", "f"), Code::bad_file,
               "f: at byte 5: text after a closing quote");
  EXPECT_EQ(CsvTable::parse("", "f")->rows(), 0);
}

}  // namespace
}  // namespace loom
