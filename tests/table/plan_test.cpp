// Plans: roles, statistics of the rows that train, encoded values, JSON.
#include "table/plan.hpp"

#include <cmath>

#include "table_testing.hpp"

namespace loom::core {
namespace {

using Floats = std::vector<float>;

const char* const kHouses =
    "id,area,town,built,garden,price\n"
    "1,50,Ulm,2001-05-01,yes,100\n"
    "2,70,Bonn,2003-06-02,no,150\n"
    "3,,Ulm,2001-07-03,yes,120\n"
    "4,90,Kiel,2007-08-04,,210\n";

TEST(Plans, AreDescribedInOneLine) {
  const Planned p = plan_of(kHouses, {.target = {"price"}}).or_exit();
  EXPECT_EQ(p.plan.describe(),
            "5 columns: 1 number, 1 boolean, 1 category (3 levels), 1 date, 1 dropped; target "
            "price, a number");
  EXPECT_TRUE(mentions(p.notes, "'id' (it numbers the rows)"));
}

TEST(Plans, RolesFollowFromTheOptions) {
  const char* text = "a,b,c,w,y\n1,2,5,1,0.5\n7,3,1,2,1.5\n3,9,2,4,2\n";
  const TablePlan all = plan_of(text, {.target = {"y"}, .drop = {"b"}, .weights = "w"})->plan;
  EXPECT_EQ(all.inputs(), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(encode(text, all)->weights, (Floats{1, 2, 4}));
  const TablePlan some = plan_of(text, {.target = {"y", "1"}, .columns = {"c"}})->plan;
  EXPECT_EQ(some.inputs(), (std::vector<std::string>{"c"}));
  EXPECT_EQ(some.targets(), (std::vector<std::string>{"a", "y"}));
  EXPECT_FALSE(plan_of(kHouses, {.target = {"price"}, .weights = "area"}).ok());  // it has a gap
}

TEST(Plans, ValuesAreThoseOfTheFormulas) {
  const char* text = "n,c,b,y\n1,u,yes,0\n,v,no,1\n3,u,yes,2.5\n8,,yes,4\n";
  const TablePlan plan = plan_of(text).or_exit().plan;
  // n: filled with the median 3, mean 3.75; c: two levels and gaps; b.
  ASSERT_EQ(plan.width(), 2 + 3 + 1);
  const EncodedTable out = encode(text, plan).or_exit();
  const double sd = std::sqrt((2.75 * 2.75 + 2 * 0.75 * 0.75 + 4.25 * 4.25) / 4);
  const auto n = [&](double x) { return static_cast<float>((x - 3.75) / sd); };
  EXPECT_EQ(out.inputs, (Floats{n(1), 0, 1, 0, 0, 1,  //
                                n(3), 1, 0, 1, 0, 0,  //
                                n(3), 0, 1, 0, 0, 1,  //
                                n(8), 0, 1, 0, 1, 1}));
  EXPECT_EQ(out.targets, (Floats{0, 1, 2.5, 4}));
}

TEST(Plans, StatisticsAreThoseOfTheRowsThatTrain) {
  const char* text = "n,c,y\n1,u,0.5\n3,v,1\n100,w,2\n";
  const TablePlan plan = plan_of(text, {}, {true, true, false}).or_exit().plan;
  EXPECT_EQ(plan.columns[0].mean, 2);
  EXPECT_EQ(plan.columns[0].deviation, 1);
  EXPECT_EQ(plan.columns[1].levels, (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(plan.columns[2].mean, 0.75);
  const EncodedTable out = encode(text, plan).or_exit();
  EXPECT_EQ(out.inputs, (Floats{-1, 1, 0, 1, 0, 1, 98, 0, 0}));
  EXPECT_TRUE(mentions(out.notes, "'c' have a level that training did not, such as 'w'"));
}

TEST(Plans, RareLevelsAboveTheLimitShareOneValue) {
  const char* text = "c,y\na,0.5\na,1\nb,2\nb,3\nc,4\nd,5\n";
  const Planned p = plan_of(text, {.one_hot_limit = 2}).or_exit();
  EXPECT_EQ(p.plan.width(), 3);
  EXPECT_TRUE(mentions(p.notes, "--one-hot-limit 4"));
  EXPECT_EQ(encode("c\nd\nz\n", p.plan, false)->inputs, (Floats{0, 0, 1, 0, 0, 0}));
}

TEST(Plans, TargetsAreClassesOrNumbersByTheirValues) {
  struct Case {
    const char* text;
    int64_t classes;  // 0 means a number
  };
  const Case cases[] = {
      {"x,y\n1,cat\n2,dog\n5,cat\n", 2}, {"x,y\n1,0\n2,1\n5,0\n", 2},
      {"x,y\n1,1\n2,3\n5,2\n", 3},       {"x,y\n1,5\n2,7\n5,6\n", 0},
      {"x,y\n1,0.5\n2,1\n5,0\n", 0},     {"x,y\n1,yes\n2,no\n5,no\n", 2},
      {"x,y\n1,0\n2,2\n5,4\n", 0},
  };
  for (const Case& c : cases) {
    const TablePlan plan = plan_of(c.text).or_exit().plan;
    EXPECT_EQ(plan.has_classes() ? plan.outputs() : 0, c.classes) << c.text;
    const EncodedTable out = encode(c.text, plan).or_exit();
    EXPECT_EQ(out.labels.size(), c.classes > 0 ? 3u : 0u) << c.text;
  }
  EXPECT_FALSE(plan_of("x,y\n1,0\n2,1\n", {.numbers = true})->plan.has_classes());
}

TEST(Plans, RowsWithoutATargetAreLeftOutOfTraining) {
  const char* text = "x,y\n1,0.5\n2,\n3,1.5\n";
  const TablePlan plan = plan_of(text).or_exit().plan;
  const EncodedTable out = encode(text, plan).or_exit();
  EXPECT_EQ(out.rows, (std::vector<int64_t>{0, 2}));
  EXPECT_TRUE(mentions(out.notes, "1 rows without a target"));
  EXPECT_EQ(encode(text, plan, false)->samples, 3);
}

TEST(Plans, WindowsOfASeriesHaveTheTargetSomeRowsLater) {
  const char* text = "x,y\n7,10\n2,20\n3,30\n4,40\n5,50\n6,60.5\n";
  PlanOptions options;
  options.window = {.rows = 2, .horizon = 2, .stride = 1};
  const TablePlan plan = plan_of(text, options).or_exit().plan;
  EXPECT_EQ(plan.width(), 2);
  const EncodedTable out = encode(text, plan).or_exit();
  EXPECT_EQ(out.samples, 3);
  EXPECT_EQ(out.inputs.size(), 3u * 2 * 2);
  EXPECT_EQ(out.targets, (Floats{40, 50, 60.5}));
  EXPECT_EQ(encode(text, plan, false)->samples, 5);
  EXPECT_FALSE(encode("x,y\n1,2\n", plan, false).ok());
}

TEST(Plans, PartsOfDatesAreCycles) {
  const char* text = "t,y\n2024-01-01 00:00,1.5\n2024-01-01 06:00,2\n2024-01-02 12:00,3\n";
  const TablePlan plan = plan_of(text).or_exit().plan;
  EXPECT_EQ(plan.columns[0].parts, kDay | kWeekday | kHour);
  const EncodedTable out = encode(text, plan).or_exit();
  EXPECT_FLOAT_EQ(out.inputs[6 + 4], 1);  // the sine of a quarter of the day
}

TEST(Plans, ErrorsSayWhichColumnIsMeant) {
  struct Case {
    const char* text;
    PlanOptions options;
    const char* message;
  };
  const Case cases[] = {
      {kHouses, {.target = {"prise"}}, "no column 'prise' for the target"},
      {kHouses, {.target = {"built"}}, "the target 'built' is a date"},
      {kHouses, {.target = {"price", "town"}}, "several targets must all be numbers"},
      {"x,y\n1,a\n2,a\n", {}, "the target 'y' is always 'a'"},
      {"x,y\n1,0.5\n1,2\n", {}, "no column that can be an input"},
  };
  for (const Case& c : cases) {
    const Result<Planned> plan = plan_of(c.text, c.options);
    ASSERT_FALSE(plan.ok()) << c.message;
    EXPECT_NE(plan.error().message.find(c.message), std::string::npos) << plan.error().message;
  }
}

TEST(Plans, JsonReadsBackAsTheSamePlan) {
  PlanOptions options{.target = {"price"}, .one_hot_limit = 2};
  options.window.rows = 2;
  const TablePlan plan = plan_of(kHouses, options).or_exit().plan;
  const std::string text = dump_json(plan_json(plan));
  const TablePlan back = read_plan(parse_json(text, "t").or_exit(), "t").or_exit();
  EXPECT_EQ(dump_json(plan_json(back)), text);
  EXPECT_EQ(back.width(), plan.width());
  EXPECT_EQ(encode(kHouses, back, false)->inputs, encode(kHouses, plan, false)->inputs);
  for (const char* bad : {"{}", "{\"version\":1,\"columns\":[]}",
                          "{\"version\":1,\"columns\":[{\"name\":\"a\",\"role\":\"x\"}]}",
                          "{\"version\":1,\"columns\":[{\"name\":\"a\",\"role\":\"input\","
                          "\"kind\":\"text\"}]}"})
    EXPECT_FALSE(read_plan(parse_json(bad, "t").or_exit(), "t").ok()) << bad;
}

}  // namespace
}  // namespace loom::core
