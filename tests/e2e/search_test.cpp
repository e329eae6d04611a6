// loom search as a person uses it: trials by seed, a grid, halving, a log from which it resumes.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <set>

#include "e2e/program.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

using test::Ran;
using test::run_loom;
using test::TempFolder;
using testing::HasSubstr;

class Searching : public testing::Test {
 protected:
  void SetUp() override {
    net_ = folder_.path() + "/net.json";
    ASSERT_EQ(run_loom("new mlp --in 2 --hidden 6 --out 3 -o " + net_).code, 0);
    std::string csv;
    for (int i = 0; i < 60; ++i)
      csv += std::to_string(i % 3) + "." + std::to_string(i % 10) + "," + std::to_string(i % 7) +
             "," + std::to_string(i % 3) + "\n";
    csv_ = folder_.write("table.csv", csv);
  }
  Ran search(const std::string& more) const {
    return run_loom("search " + net_ + " " + csv_ + " --quiet --set threads=1 " + more);
  }
  static JsonValue json_of(const Ran& ran) {
    Result<JsonValue> json = parse_json(ran.out, "stdout");
    EXPECT_TRUE(json.ok()) << ran.out << ran.err;
    return json.ok() ? std::move(*json) : JsonValue::object();
  }

  TempFolder folder_;
  std::string net_, csv_;
};

TEST_F(Searching, TheBestTrialIsTheOneThatATrainingOfItsSettingsGives) {
  const JsonValue all =
      json_of(search("--try rate=0.001..0.1:log --try batch=4..16 --trials 5 "
                     "--epochs 3 --json"));
  const auto& trials = all.find("trials")->elements();
  ASSERT_EQ(trials.size(), 5u);
  double before = -1;
  std::set<std::string> rates;
  for (const JsonValue& trial : trials) {
    const double score = trial.find("score")->as_double("").or_exit();
    EXPECT_GE(score, before);
    before = score;
    const JsonValue& values = *trial.find("values");
    const double rate = std::stod(values.find("rate")->text());
    EXPECT_TRUE(rate >= 0.001 && rate <= 0.1) << rate;
    const int batch = std::stoi(values.find("batch")->text());
    EXPECT_TRUE(batch >= 4 && batch <= 16) << batch;
    rates.insert(values.find("rate")->text());
  }
  EXPECT_EQ(rates.size(), 5u);
  // The printed command gives that score.
  const std::string best = all.find("best")->text();
  ASSERT_TRUE(best.starts_with("loom train "));
  const JsonValue ran = json_of(run_loom(best.substr(5) + " --json --quiet"));
  EXPECT_EQ(ran.find("validation_losses")->elements().back().as_double("").or_exit(),
            trials[0].find("score")->as_double("").or_exit());
}

TEST_F(Searching, NeitherJobsNorTheLogChangeAScore) {
  const std::string space = "--try rate=0.001..0.1:log --trials 4 --epochs 2 ";
  const Ran one = search(space);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(search(space + "--jobs 3").out, one.out);
  const std::string log = folder_.path() + "/log.jsonl";
  EXPECT_EQ(search(space + "--log " + log).out, one.out);
  const std::string first = *read_file(log);
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 4);
  EXPECT_EQ(search(space + "--log " + log).out, one.out);
  EXPECT_EQ(*read_file(log), first);
  // A search that was killed while it wrote a line continues after the complete ones.
  folder_.write("cut.jsonl", first.substr(0, first.size() - 20));
  EXPECT_EQ(search(space + "--log " + folder_.path() + "/cut.jsonl").out, one.out);
}

TEST_F(Searching, AGridHasEveryCombinationAndTheBestIsWritten) {
  const std::string out = folder_.path() + "/best.entity";
  const JsonValue all =
      json_of(search("--method grid --try rate=0.01,0.03 --try optimizer=adam,lion "
                     "--by accuracy --epochs 2 --json -o " +
                     out));
  const auto& trials = all.find("trials")->elements();
  ASSERT_EQ(trials.size(), 4u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_LE(trials[i].find("score")->as_double("").or_exit(),
              trials[i - 1].find("score")->as_double("").or_exit());
  }
  EXPECT_EQ(run_loom("eval " + out + " " + csv_).code, 0);
}

TEST_F(Searching, HalvingGivesTheBestThirdThreeTimesTheEpochs) {
  const JsonValue all =
      json_of(search("--method halving --try rate=0.0005..0.3:log --trials 9 --epochs 9 --json"));
  std::map<int64_t, int> epochs;
  for (const JsonValue& trial : all.find("trials")->elements())
    ++epochs[trial.find("epochs")->as_int("").or_exit()];
  EXPECT_EQ(epochs, (std::map<int64_t, int>{{1, 9}, {3, 3}, {9, 1}}));
}

TEST_F(Searching, FoldsAreTheMeanOfACrossValidation) {
  const Ran ran = search("--try rate=0.01,0.02 --method grid --folds 3 --epochs 2");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("--folds 3"));
}

TEST_F(Searching, ErrorsAreOneLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"--try rate", "give OPTION=VALUES"},
      {"--try rate=3..1", "two numbers that rise"},
      {"--try rate=0..1:log", "begins above 0"},
      {"--try rate=0.1 --try rate=0.2", "occurs twice"},
      {"--try rate=0.1..0.2 --method grid", "takes values, no range"},
      {"--try rate=0.1 --method best", "there are random, grid, halving"},
      {"--try raet=0.1", "the first trial (raet=0.1) failed"},
      {"--try rate=0.1 --by auk", "auk"}};
  for (const auto& [more, says] : cases) {
    const Ran ran = search(more);
    EXPECT_NE(ran.code, 0) << more;
    EXPECT_THAT(ran.err, HasSubstr(says)) << more;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

}  // namespace
}  // namespace loom::core
