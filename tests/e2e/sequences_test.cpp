// Samples of different lengths as a person meets them: loom train, eval and predict with --lengths.
#include <gmock/gmock.h>

#include "e2e/program.hpp"

namespace loom::core {
namespace {

using test::Ran;
using test::run_loom;
using test::TempFolder;
using testing::HasSubstr;

class SequencesOfFiles : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run_loom("new gru --time 4 --in 1 --hidden 8 --out 2 -o " + net_).code, 0);
  }
  // Walks of 1 to 4 steps, and whether their sum is above 0; cells after the end are `filler`.
  std::string walks(const std::string& name, const std::string& filler) const {
    std::string text = "steps,a,b,c,d,side\n";
    for (int i = 0; i < 120; ++i) {
      const int count = 1 + i % 4;
      int sum = 0;
      text += std::to_string(count);
      for (int t = 0; t < 4; ++t) {
        const int step = (i * 7 + t * 13) % 11 - 5;
        if (t < count) sum += step;
        text += "," + (t < count ? std::to_string(step) : filler);
      }
      text += sum > 0 ? ",up\n" : ",down\n";
    }
    return folder_.write(name, text);
  }
  std::string train(const std::string& data, const std::string& to) const {
    const Ran ran = run_loom("train " + net_ + " " + data +
                             " --lengths steps --header yes --split 0.8 --epochs 30 --rate 0.02 "
                             "--quiet --json -o " +
                             folder_.path() + "/" + to);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  }

  TempFolder folder_;
  std::string net_ = folder_.path() + "/net.json";
};

TEST_F(SequencesOfFiles, AreLearnedWhateverStandsBehindTheirEnds) {
  const std::string empty = walks("empty.csv", ""), nines = walks("nines.csv", "9");
  (void)train(empty, "a.entity");
  (void)train(nines, "b.entity");
  const std::string a = folder_.path() + "/a.entity", b = folder_.path() + "/b.entity";
  EXPECT_EQ(run_loom("diff " + a + " " + b).code, 0) << "the same weights";
  const std::string how = " --lengths steps --header yes ";
  const Ran eval = run_loom("eval " + a + " " + empty + how + "--json");
  ASSERT_EQ(eval.code, 0) << eval.err;
  const Ran same = run_loom("eval " + a + " " + nines + how + "--json");
  const auto loss = [](const Ran& ran) { return ran.out.substr(ran.out.find("\"loss\""), 24); };
  EXPECT_EQ(loss(eval), loss(same));
  const Ran one = run_loom("predict " + a + " " + empty + how),
            two = run_loom("predict " + a + " " + nines + how);
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(one.out, two.out);
}

TEST_F(SequencesOfFiles, ErrorsAreOneLine) {
  const std::string data = walks("d.csv", "");
  const struct {
    const char* arguments;
    const char* message;
  } cases[] = {
      {"--header yes", "must be 4 for the network's input"},
      {"--lengths length --header yes", "no column 'length' for the lengths of samples"},
      {"--lengths side --header yes", "the lengths of samples are in the last column"},
  };
  for (const auto& c : cases) {
    const Ran ran = run_loom("train " + net_ + " " + data + " --quiet " + c.arguments);
    EXPECT_NE(ran.code, 0);
    EXPECT_THAT(ran.err, HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace loom::core
