// Types of columns, and errors of tables with their row and column.
#include "base/text.hpp"
#include "table_testing.hpp"

namespace loom::core {
namespace {

std::string lines(std::initializer_list<const char*> cells, int times = 1) {
  std::string out = "x,c\n";
  int row = 0;
  for (int i = 0; i < times; ++i) {
    for (const char* cell : cells) out += std::to_string(row++ % 7) + "," + cell + "\n";
  }
  return out;
}

TEST(Tables, TypesOfColumnsFollowFromTheirCells) {
  struct Case {
    std::string text;
    ColumnKind kind;
  };
  std::string texts = "x,c\n", odd = "x,c\n";
  for (int i = 0; i < 40; ++i) texts += "1,text number " + std::to_string(i) + "\n";
  for (int i = 0; i < 100; ++i) odd += "1," + (i == 50 ? "abc" : std::to_string(i * 3)) + "\n";
  const Case cases[] = {
      {lines({"1", "2.5", "-3e2"}), ColumnKind::number},
      {lines({"1", "", "NA"}), ColumnKind::number},
      {lines({"yes", "no", "yes"}), ColumnKind::boolean},
      {lines({"red", "blue", "red"}), ColumnKind::category},
      {lines({"1", "b", "1"}), ColumnKind::category},
      {lines({"2024-01-31", "2024-02-01"}), ColumnKind::date},
      {lines({"31/01/2024", "01/02/2024"}), ColumnKind::date},
      {lines({"31/01/2024", "01/31/2024"}), ColumnKind::category},
      {lines({"", "NA", "?"}), ColumnKind::empty},
      {texts, ColumnKind::text},
      {odd, ColumnKind::number},
  };
  for (const Case& c : cases)
    EXPECT_EQ(table_of(c.text)->columns[1].kind, c.kind) << c.text.substr(0, 60);
}

TEST(Tables, AnOddCellAmongManyNumbersCountsAsMissingWithANote) {
  std::string text = "a,b\n";
  for (int i = 0; i < 100; ++i) text += "1," + (i == 50 ? "abc" : std::to_string(i * 3)) + "\n";
  const Table table = table_of(text).or_exit();
  EXPECT_EQ(table.columns[1].missing, 1);
  EXPECT_TRUE(mentions(table.notes, "'abc'"));
}

TEST(Tables, OrderOfDayAndMonthFollowsFromAllDates) {
  EXPECT_EQ(table_of(lines({"01/02/2024", "13/02/2024"}))->columns[1].order, DateOrder::day_first);
  EXPECT_EQ(table_of(lines({"01/02/2024", "02/13/2024"}))->columns[1].order,
            DateOrder::month_first);
}

TEST(Tables, LevelsAreSortedByValueOrByText) {
  TableReading options;
  options.categories = {"c"};
  EXPECT_EQ(table_of(lines({"10", "9", "2"}), options)->columns[1].levels,
            (std::vector<std::string>{"2", "9", "10"}));
  EXPECT_EQ(table_of(lines({"b", "a", "b"}))->columns[1].levels,
            (std::vector<std::string>{"a", "b"}));
}

TEST(Tables, ErrorsNameTheRowAndTheColumn) {
  struct Case {
    std::string text, message;
  };
  const Case cases[] = {
      {"a,b\n1,2\n3\n", "row 2 has 1 cells, the first row has 2"},
      {"a,b\n1,2\n3,4,5\n", "row 2 has at least 3 cells, the first row has 2; put cells that"},
      {"a,a\n1,2\n", "two columns 'a'"},
      {"a,b\n", "no samples"},
      {"a,b\n1,\"x\n", "never closed"},
  };
  for (const Case& c : cases) {
    const Result<Table> table = table_of(c.text);
    ASSERT_FALSE(table.ok()) << c.text;
    EXPECT_NE(table.error().message.find(c.message), std::string::npos) << table.error().message;
  }
}

TEST(Tables, ColumnsOfAPlanAreFoundByNameInAnyOrder) {
  TableReading options;
  options.types = {{"b", ColumnKind::number}, {"a", ColumnKind::category}};
  const Table table = table_of("z,a,b\n9,x,1\n9,y,2\n", options).or_exit();
  EXPECT_EQ(table.columns[0].values, (std::vector<double>{1, 2}));
  EXPECT_EQ(table.columns[1].levels, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(mentions(table.notes, "was not trained with: z"));
  const Result<Table> absent = table_of("a,c\nx,1\n", options);
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("no column 'b'"), std::string::npos);
  const Result<Table> wrong = table_of("a,b\nx,one\n", options);
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("row 1, column 'b': 'one' is not a number"),
            std::string::npos);
}

TEST(Tables, AFileWithoutAHeaderHasTheColumnsOfTraining) {
  TableReading options;
  options.types = {{"b", ColumnKind::number}};
  options.order = {"a", "b", "y"};
  EXPECT_EQ(table_of("1,2,3\n4,5,6\n", options)->columns[0].values, (std::vector<double>{2, 5}));
  EXPECT_EQ(table_of("2\n5\n", options)->columns[0].values, (std::vector<double>{2, 5}));
  EXPECT_FALSE(table_of("1,2\n4,5\n", options).ok());
  options.by_order = true;
  EXPECT_EQ(table_of("u,v,w\n1,2,3\n4,5,6\n", options)->columns[0].values,
            (std::vector<double>{2, 5}));
}

TEST(Tables, GuessesThatChangeNumbersAreNoted) {
  struct Case {
    const char* cells;
    const char* note;
  };
  const Case cases[] = {
      {"01067\n80331\n", "digits that begin with 0 are categories"},
      {"01/02/2020\n03/04/2021\n", "dates begin with the day or the month; the day is taken"},
      {"NA\nFR\n", "'c' 3 (NA)"},
  };
  for (const Case& c : cases) {
    std::string text = "c,y\n";
    for (const char at : std::string(c.cells)) text += at == '\n' ? ",1.5\n" : std::string(1, at);
    const Planned p = plan_of(text +
                              ","
                              "2.5\n" +
                              text.substr(4))
                          .or_exit();
    EXPECT_TRUE(mentions(p.notes, c.note)) << text;
  }
}

TEST(Tables, AFewOddDatesAreMissingAndManyAreATextWithAReason) {
  std::string dates = "d,y\n";
  for (int i = 0; i < 100; ++i)
    dates += cat("2020-01-", i % 28 < 9 ? "0" : "", i % 28 + 1, ",", i, ".5\n");
  const Table odd = table_of(dates + "2020-13-45,1\n").or_exit();
  EXPECT_EQ(odd.columns[0].kind, ColumnKind::date);
  EXPECT_TRUE(mentions(odd.notes, "such as '2020-13-45'; they count as missing"));
  const Result<Planned> text =
      plan_of("d,y\n" + dates.substr(4, dates.find("2020-01-28") - 4) + "x1,1\nx2,2\nx3,3\n");
  ASSERT_FALSE(text.ok());
  EXPECT_NE(text.error().message.find("3 cells are not a date, such as 'x1'"), std::string::npos)
      << text.error().message;
}

TEST(Tables, MemoryOfColumnsIsOfTheBudget) {
  std::string text = "a,b\n";
  for (int i = 0; i < 1000; ++i) text += "1,2\n";
  const Result<Table> table = read_table(ByteSource::own(text, "t.csv", MemoryBudget(10000)), {});
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().code, Code::out_of_memory);
}

}  // namespace
}  // namespace loom::core
