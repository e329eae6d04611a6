// Training continues from any file with a network: its weights, normalization and classes. Frozen
// parts keep their bits; data that do not fit are a one-line error.
#include <gmock/gmock.h>

#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::Ran;
using test::run_loom;
using test::TempFolder;
using testing::HasSubstr;

class FineTune : public testing::Test {
 protected:
  void SetUp() override {
    const std::string net = at("net.json");
    ASSERT_EQ(run_loom("new mlp --in 4 --hidden 8 --out 4 -o " + net).code, 0);
    ASSERT_EQ(
        run_loom("train " + net + " " + fruit_ + " --normalize standard --epochs 3 --quiet -o " +
                 at("w.entity") + " --checkpoint " + at("run.safetensors"))
            .code,
        0);
    ASSERT_EQ(run_loom("convert " + at("w.entity") + " " + at("w.onnx")).code, 0);
    ASSERT_EQ(run_loom("convert " + at("w.entity") + " " + at("w.safetensors")).code, 0);
  }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  JsonValue trained(const std::string& file, const std::string& more,
                    const std::string& epochs = "2") const {
    const Ran ran =
        run_loom("train " + at(file) + " " + fruit_ +
                 " --json --threads 1 --split 0.8 --seed 3 --epochs " + epochs + " " + more);
    Result<JsonValue> value = parse_json(ran.out, "stdout");
    EXPECT_TRUE(value.ok()) << ran.out << ran.err;
    return value.ok() ? std::move(*value) : JsonValue::object();
  }

  TempFolder folder_;
  const std::string fruit_ = loom_test::source_path("examples/data/fruit.csv");
};

TEST_F(FineTune, GoesOnFromEveryFormatWithTheSameBits) {
  const JsonValue expected = trained("w.entity", "");
  ASSERT_NE(expected.find("weights_hash"), nullptr);
  for (const char* file : {"w.onnx", "w.safetensors", "run.safetensors"}) {
    const JsonValue other = trained(file, "");
    ASSERT_NE(other.find("weights_hash"), nullptr) << file;
    EXPECT_EQ(other.find("weights_hash")->text(), expected.find("weights_hash")->text()) << file;
    EXPECT_EQ(dump_json(*other.find("losses")), dump_json(*expected.find("losses"))) << file;
  }
}

TEST_F(FineTune, KeepsWhatIsFrozen) {
  const std::string freeze = "--freeze '(0, 0, 0, 0)/*' --rate-for '*/bias=2' -o ";
  const JsonValue json = trained("w.onnx", freeze + at("tuned.entity"));
  EXPECT_EQ(json.find("frozen_parameters")->as_int("").value(), 4 * 8 + 8);
  EXPECT_EQ(json.find("parameters")->as_int("").value(), 4 * 8 + 8 + 8 * 4 + 4);
  const Ran diff = run_loom("diff " + at("w.entity") + " " + at("tuned.entity"));
  EXPECT_THAT(diff.out + diff.err, HasSubstr("/weight"));
  EXPECT_THAT(diff.out, testing::Not(HasSubstr("(0, 0, 0, 0)/weight  "))) << diff.out;
}

TEST_F(FineTune, ResumesAFrozenRunOnlyWithTheSameRules) {
  const std::string common =
      " --freeze '*0, 0)/bias' --schedule constant --checkpoint " + at("frozen.safetensors") + " ";
  const JsonValue straight = trained("w.entity", "--freeze '*0, 0)/bias' --schedule constant");
  (void)trained("w.entity", common, "1");
  const JsonValue resumed = trained("w.entity", common + "--resume");
  EXPECT_EQ(resumed.find("weights_hash")->text(), straight.find("weights_hash")->text());
  const Ran other = run_loom("train " + at("w.entity") + " " + fruit_ +
                             " --epochs 2 --split 0.8 --seed 3 --schedule constant --checkpoint " +
                             at("frozen.safetensors") + " --resume");
  EXPECT_NE(other.code, 0);
  EXPECT_THAT(other.err, HasSubstr("freeze was \"*0, 0)/bias\""));
}

TEST_F(FineTune, DataAndRulesThatDoNotFitAreOneLine) {
  const std::string narrow = folder_.write("narrow.csv", "1,2,plum\n3,4,apple\n");
  const std::string names = folder_.write("names.csv", "1,2,3,4,plum\n3,4,5,6,kiwi\n");
  const struct {
    std::string arguments;
    const char* says;
  } cases[] = {
      {narrow, "3 columns, must be 4 for the network's input [4] and 1 for the target"},
      {names, "class 'kiwi' was not in training"},
      {fruit_ + " --freeze '(7*'", "freeze: no parameter matches '(7*'"},
      {fruit_ + " --freeze '*'", "freeze: every parameter is frozen; leave one to train"},
      {fruit_ + " --rate-for '*/bias'", "--rate-for is */bias, must be PATTERN=FACTOR"},
      {fruit_ + " --rate-for '*/bias=x'", "--rate-for of */bias is x, must be a number"},
      {fruit_ + " --rate-for '*/bias=-1'", "--rate-for of */bias is -1, must be above 0"},
  };
  for (const auto& c : cases) {
    const Ran ran = run_loom("train " + at("w.onnx") + " " + c.arguments);
    EXPECT_NE(ran.code, 0) << c.arguments;
    EXPECT_THAT(ran.err, HasSubstr(c.says));
  }
}

}  // namespace
}  // namespace loom::core
