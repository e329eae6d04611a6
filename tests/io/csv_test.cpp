// CSV as a stream: separators, quotes, header detection, and errors by row and column. The cells
// must not depend on where a piece of the stream ends.
#include "io/arrays/csv.hpp"

#include <gmock/gmock.h>

#include "base/text.hpp"
#include "io/io_testing.hpp"

namespace loom::core {
namespace {

using test::bytes_of;
using test::expect_error;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kWide = 1000;

Result<CsvFile> open(const std::string& text, CsvHeader header = CsvHeader::automatic,
                     const MemoryBudget& memory = {}) {
  return CsvFile::open(ByteSource::of(bytes_of(text), "f", memory), kWide, header);
}

std::vector<std::string> cells_of(CsvFile& file) {
  std::vector<std::string> cells;
  const Status read = file.read([&](const CsvCell& cell) {
    cells.emplace_back(cell.text);
    return Status();
  });
  EXPECT_TRUE(read.ok()) << read.error().str();
  return cells;
}

// The Error of the first cell that is not a number.
Status read_numbers(const std::string& text) {
  Result<CsvFile> file = open(text);
  if (!file.ok()) return file.error();
  return file->read([&](const CsvCell& cell) -> Status {
    const Result<float> number = file->number(cell);
    return number.ok() ? Status() : Status(number.error());
  });
}

TEST(Csv, ReadsEverySeparatorAndBothLineBreaks) {
  for (const std::string text : {"1,2\n3,4\n", "1;2\r\n3;4", "1\t2\n\n3\t4\n\n", "1,2\n3,4\r\n"}) {
    Result<CsvFile> file = open(text);
    ASSERT_TRUE(file.ok()) << file.error().str();
    EXPECT_EQ(file->rows(), 2) << text;
    EXPECT_EQ(file->cols(), 2);
    EXPECT_THAT(cells_of(*file), ElementsAre("1", "2", "3", "4")) << text;
    EXPECT_TRUE(file->header().empty());
    EXPECT_TRUE(file->last_is_numeric());
  }
}

// Issue 37, line 33: files of old Macs, and of programs that end each row with a separator.
TEST(Csv, ReadsRowsThatEndInACarriageReturn) {
  for (const std::string text :
       {"1,2\r3,4\r", "1;2\r3;4", "\r1,2\r\r3,4\r", "\"1\",2\r3,\"4\"\r"}) {
    Result<CsvFile> file = open(text);
    ASSERT_TRUE(file.ok()) << file.error().str();
    EXPECT_EQ(file->rows(), 2) << text;
    EXPECT_THAT(cells_of(*file), ElementsAre("1", "2", "3", "4")) << text;
  }
}

TEST(Csv, LeavesOutTheColumnAfterATrailingSeparator) {
  for (const std::string text :
       {"a,b,\n1,2,\n3,4,\n", "a,b,\r\n1,2, \r\n3,4,", "a;b;\n1;2;\n3;4;\n"}) {
    Result<CsvFile> file = open(text);
    ASSERT_TRUE(file.ok()) << file.error().str();
    EXPECT_TRUE(file->trailing_separator());
    EXPECT_EQ(file->cols(), 2) << text;
    EXPECT_THAT(file->header(), ElementsAre("a", "b"));
    EXPECT_TRUE(file->last_is_numeric());
    EXPECT_THAT(cells_of(*file), ElementsAre("1", "2", "3", "4")) << text;
  }
  Result<CsvFile> label = CsvFile::open(ByteSource::of(bytes_of("1,x,\n2,y,\n"), "f", {}), 2);
  EXPECT_EQ(label->cols(), 2);
  EXPECT_FALSE(label->last_is_numeric());
  // Cells of data may be empty: the end of a sequence.
  EXPECT_EQ(open("1,2,\n3,4,\n", CsvHeader::no)->cols(), 3);
  // One value in the column makes it a column.
  EXPECT_EQ(open("1,2,\n3,4,5\n", CsvHeader::no)->cols(), 3);
  const auto narrow = CsvFile::open(ByteSource::of(bytes_of("1,2,\n3,4,\n"), "f", {}), 2);
  EXPECT_EQ(narrow->cols(), 2);
}

TEST(Csv, FindsTheHeaderAndKeepsTextLabels) {
  const std::string text =
      "\xEF\xBB\xBF\"a \"\"b\"\"\",kind\n+1.5e0,\"x, y\"\n-2,\"line\nbreak\"\n";
  Result<CsvFile> file = open(text);
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_THAT(file->header(), ElementsAre("a \"b\"", "kind"));
  EXPECT_EQ(file->rows(), 2);
  EXPECT_THAT(cells_of(*file), ElementsAre("+1.5e0", "x, y", "-2", "line\nbreak"));
  EXPECT_FALSE(file->last_is_numeric());
}

// Whether the first row is a header, and the question to the user in ambiguous cases.
TEST(Csv, TakesAFirstRowForAHeaderByOneRule) {
  const struct {
    std::string text;
    CsvHeader header;
    std::string takes;  // "header", "data" or the Error
  } rows[] = {
      {"a,b\n1,2\n", CsvHeader::automatic, "header"},
      {"a,kind\n1,cat\n", CsvHeader::automatic, "header"},
      {",kind\n1,cat\n", CsvHeader::automatic, "header"},
      {"a,b\n", CsvHeader::automatic, "header"},
      {"a,b\n,\n1,2\n", CsvHeader::automatic,
       "header"},  // the first cell that is not empty decides
      {"1,cat\n2,dog\n", CsvHeader::automatic, "data"},
      {"red,cat\nblue,dog\n", CsvHeader::automatic, "data"},
      {"1,2\n3,oops\n", CsvHeader::automatic, "data"},
      {"1,2\n", CsvHeader::automatic, "data"},
      {"x,2\n3,4\n", CsvHeader::automatic,
       "f: at byte 0: row 1, column 1: 'x' among numbers; say with --header yes or --header no "
       "whether this row is a header"},
      {"1,,2\n3,4,5\n", CsvHeader::automatic,
       "f: at byte 2: row 1, column 2: an empty field among numbers; say with --header yes or "
       "--header no whether this row is a header"},
      {"1,2,\n3,4,5\n", CsvHeader::automatic,
       "f: at byte 4: row 1, column 3: an empty field among numbers; say with --header yes or "
       "--header no whether this row is a header"},
      {"x,2\n3,4\n", CsvHeader::yes, "header"},
      {"1,2\n3,4\n", CsvHeader::yes, "header"},
      {"a,b\n1,2\n", CsvHeader::no, "data"},
      {"1,,2\n3,4,5\n", CsvHeader::no, "data"},
  };
  for (const auto& row : rows) {
    const Result<CsvFile> file = open(row.text, row.header);
    if (!file.ok()) {
      EXPECT_EQ(file.error().str(), row.takes) << row.text;
      continue;
    }
    EXPECT_EQ(file->header().empty() ? "data" : "header", row.takes) << row.text;
  }
}

TEST(Csv, NamesRowAndColumnOfWhatIsWrong) {
  expect_error(read_numbers("a,b\n1,2\n3,oops\n"), Code::bad_file,
               "f: at byte 10: row 2, column 'b': 'oops' is not a number");
  expect_error(read_numbers("1,2\nnan,2\n"), Code::bad_file,
               "f: at byte 4: row 2, column 1: the value is not finite");
  expect_error(read_numbers("1,2\n3,1e99\n"), Code::bad_file,
               "f: at byte 6: row 2, column 2: the value is not finite");
  expect_error(open("1,2\n3\n"), Code::bad_file,
               "f: at byte 4: a row of 1 cells, the first row has 2");
  expect_error(open("1,2\n3,4,5\n"), Code::bad_file,
               "f: at byte 4: a row of more than 2 cells, the first row has 2");
  expect_error(open("1,\"2\n"), Code::bad_file, "f: at byte 2: a quoted field is never closed");
  expect_error(open("1,\"2\"3\n"), Code::bad_file, "f: at byte 5: text after a closing quote");
  expect_error(open("1,\"2\"\r3\n"), Code::bad_file, "f: at byte 6: text after a closing quote");
  EXPECT_EQ(open("")->rows(), 0);
  EXPECT_EQ(open("\n\n")->rows(), 0);
}

TEST(Csv, ReadsACellInTheEndOfATextWithoutALineBreak) {
  const std::string text = "1,2\n3,";
  Result<CsvFile> file = open(text, CsvHeader::no);
  ASSERT_TRUE(file.ok()) << file.error().str();
  EXPECT_THAT(cells_of(*file), ElementsAre("1", "2", "3", ""));
}

// Fields, quotes, separators and line breaks across every end of a piece.
TEST(Csv, GivesTheSameCellsWhereverAPieceEnds) {
  const std::string rows = "12.5,\"a \"\"b\"\" c\"\r\n-7,\"\"\n\"8\",word\n";
  for (size_t shift = 0; shift <= rows.size() + 1; ++shift) {
    // Lines of "1,x" up to `shift` bytes before the end of the first piece.
    std::string text;
    while (text.size() + 4 + shift <= ByteSource::kPiece) text += "1,x\n";
    const size_t before = text.size() / 4;
    text += std::string(ByteSource::kPiece - shift - text.size(), '\n') + rows;
    Result<CsvFile> file = open(text);
    ASSERT_TRUE(file.ok()) << shift << ": " << file.error().str();
    std::vector<std::string> cells = cells_of(*file);
    ASSERT_EQ(cells.size(), 2 * before + 6);
    cells.erase(cells.begin(), cells.begin() + static_cast<ptrdiff_t>(2 * before));
    EXPECT_THAT(cells, ElementsAre("12.5", "a \"b\" c", "-7", "", "8", "word")) << shift;
  }
}

TEST(Csv, RefusesWhatNoTableHas) {
  expect_error(open("1," + std::string((1 << 20) + 1, '2') + "\n"), Code::bad_file,
               "f: at byte 2: a field of more than 1048576 bytes");
  expect_error(open("1,\"" + std::string((1 << 20) + 1, '2') + "\"\n"), Code::bad_file,
               "f: at byte 2: a field of more than 1048576 bytes");
  EXPECT_THAT(open("1,2\n" + std::string((1 << 20) + 2, '\n')).error().message,
              HasSubstr("more than 1048576 empty lines one after the other"));
  EXPECT_EQ(CsvFile::open(ByteSource::of(bytes_of("1,2,3,4,5"), "f"), 3)->cols(), 4);
}

TEST(Csv, StopsWhereItsValuesAreMoreThanTheBudget) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "1,2\n";
  const Result<CsvFile> file = open(text, CsvHeader::automatic, MemoryBudget(4096));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, Code::out_of_memory);
  EXPECT_EQ(file.error().str(),
            "f: needs more than 4 kB for the values, and 4 kB of the memory budget of 4 kB "
            "are left; give more with --memory SIZE, or read a smaller file");
}

}  // namespace
}  // namespace loom::core
