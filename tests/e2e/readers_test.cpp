// Every kind of file that convert, quantize and train write, read by every command that reads a
// network; and which samples of a file are scored.
#include <gmock/gmock.h>

#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

// Three classes in three rows of points, sorted by class as files of classes often are.
std::string sorted_csv(int samples) {
  std::string csv = "a,b,kind\n";
  for (int i = 0; i < samples; ++i) {
    const int kind = i * 3 / samples;
    csv += std::to_string(100 + kind * 20 + i * 7 % 13) + "," + std::to_string(i * 5 % 11);
    csv += kind == 0 ? ",red\n" : kind == 1 ? ",green\n" : ",\"blue, dark\"\n";
  }
  return csv;
}

class Readers : public testing::Test {
 protected:
  void SetUp() override {
    csv_ = folder_.write("sorted.csv", sorted_csv(90));
    net_ = at("net.json");
    ok("new mlp --in 2 --hidden 12 --out 3 --activation tanh -o " + net_);
  }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  static std::string ok(const std::string& arguments) {
    const Ran ran = run_loom(arguments);
    EXPECT_EQ(ran.code, 0) << arguments << "\n" << ran.err;
    return ran.out;
  }
  static JsonValue json(const std::string& arguments) {
    Result<JsonValue> value = parse_json(ok(arguments + " --json"), "stdout");
    EXPECT_TRUE(value.ok()) << arguments;
    return value.ok() ? std::move(*value) : JsonValue();
  }
  static std::string member(const JsonValue& object, std::string_view key) {
    return object.find(key) == nullptr ? "absent" : dump_json(*object.find(key));
  }
  void train(const std::string& more) const {
    ok("train " + net_ + " " + csv_ +
       " --split 0.8 --normalize standard --epochs 30 --rate 0.02 --quiet " + more);
  }

  TempFolder folder_;
  std::string csv_, net_;
};

TEST_F(Readers, EveryFileThatIsWrittenIsReadByEveryCommand) {
  train("-o " + at("trained.entity") + " --best " + at("best.safetensors") + " --checkpoint " +
        at("run.safetensors"));
  train("-o " + at("trained.safetensors") + " --checkpoint " + at("run.entity"));
  for (const char* name : {"made.entity", "made.safetensors", "made.npz", "made.onnx"})
    ok("convert " + at("trained.entity") + " " + at(name) + " --quiet");
  ok("convert " + at("trained.entity") + " " + at("made.json") + " --with-weights --quiet");
  ok("quantize " + at("trained.entity") + " " + at("small.entity") + " --dtype int8 --quiet");
  ok("convert " + at("small.entity") + " " + at("small.json") + " --with-weights --quiet");
  const JsonValue truth = json("eval " + at("trained.entity") + " " + csv_);
  EXPECT_GT(truth.find("accuracy")->as_double("").value(), 0.9);
  struct File {
    const char* name;
    bool same;  // values and their complete training record
  };
  const File files[] = {
      {"trained.entity", true},    {"trained.safetensors", true},
      {"best.safetensors", false}, {"run.safetensors", true},
      {"run.entity", true},        {"made.entity", true},
      {"made.safetensors", true},  {"made.npz", true},
      {"made.json", true},         {"made.onnx", true},
      {"small.entity", false},     {"small.json", false},
  };
  for (const File& f : files) {
    SCOPED_TRACE(f.name);
    const std::string file = at(f.name);
    const JsonValue scored = json("eval " + file + " " + csv_);
    if (f.same) {
      EXPECT_EQ(member(scored, "loss"), member(truth, "loss"));
      EXPECT_EQ(member(scored, "weights_hash"), member(truth, "weights_hash"));
      EXPECT_EQ(member(scored, "rows"), "\"validation\"");
    }
    const JsonValue beside = json("eval " + net_ + " " + csv_ + " --rows all --weights " + file);
    EXPECT_EQ(member(beside, "weights_hash"), member(scored, "weights_hash"));
    ok("train " + file + " " + csv_ + " --epochs 1 --quiet --force -o " + at("tuned.safetensors"));
    EXPECT_THAT(ok("info " + file), HasSubstr("(0, 0, 0, 0)   Dense"));
    ok("convert " + file + " " + at("out.entity") + " --force --quiet");
    ok("quantize " + file + " " + at("out.entity") + " --dtype int8 --force --quiet");
    EXPECT_THAT(ok("diff " + file + " " + file), HasSubstr("tensors are equal"));
    const int differ = run_loom("diff " + file + " " + at("made.npz") + " --parameters").code;
    if (f.same) {
      EXPECT_EQ(differ, 0);
    }
  }
}

// One more step with a rate of 0 changes nothing: training starts from the weights of the file.
TEST_F(Readers, TrainingGoesOnFromTheWeightsOfAnyFile) {
  train("-o " + at("trained.entity"));
  const JsonValue truth = json("eval " + at("trained.entity") + " " + csv_ + " --rows all");
  for (const char* name :
       {"made.json", "made.npz", "made.onnx", "made.safetensors", "made.entity"}) {
    ok("convert " + at("trained.entity") + " " + at(name) + " --with-weights --quiet");
    const std::string tuned = at(std::string(name) + ".tuned.safetensors");
    const Ran ran = run_loom("train " + at(name) + " " + csv_ + " --rate 0 --epochs 1 -o " + tuned);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("[starting from the weights in " + at(name) + "]"));
    const JsonValue scored = json("eval " + tuned + " " + csv_);
    EXPECT_EQ(member(scored, "loss"), member(truth, "loss")) << name;
    EXPECT_EQ(member(scored, "weights_hash"), member(truth, "weights_hash")) << name;
  }
  const Ran model =
      run_loom("train " + loom_test::source_path("models/stories.entity") + " " + csv_);
  EXPECT_EQ(model.code, 4);
  EXPECT_THAT(model.err, HasSubstr("this is a language model; give a network"));
}

TEST_F(Readers, WhatTrainingHeldOutIsWhatIsScored) {
  train("--seed 5 -o " + at("w.entity") + " --checkpoint " + at("run.safetensors"));
  const std::string last = member(json("eval " + at("run.safetensors") + " " + csv_), "loss");
  const Ran plain = run_loom("eval " + at("w.entity") + " " + csv_);
  EXPECT_THAT(plain.out, HasSubstr("18 validation samples of 90 (--split 0.8 --seed 5)"));
  const auto eval = [&](const std::string& more) {
    return json("eval " + at("w.entity") + " " + csv_ + " " + more);
  };
  EXPECT_EQ(member(eval(""), "loss"), last);
  EXPECT_EQ(member(eval("--split 0.8 --seed 5"), "loss"), last);
  EXPECT_EQ(member(eval("--rows train"), "samples"), "72");
  EXPECT_EQ(member(eval("--rows all"), "samples"), "90");
  EXPECT_NE(member(eval("--split 0.8 --seed 6"), "loss"), last);
  // Other samples are all scored, unless a split is given.
  const std::string other = folder_.write("other.csv", sorted_csv(30));
  EXPECT_EQ(member(json("eval " + at("w.entity") + " " + other), "rows"), "\"all\"");
  EXPECT_EQ(member(json("eval " + at("w.entity") + " " + other + " --split 0.5"), "samples"), "15");
  const Ran unknown = run_loom("eval " + at("w.entity") + " " + other + " --rows train");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("give --split and --seed as in training"));
  EXPECT_EQ(run_loom("eval " + at("w.entity") + " " + other + " --rows some").code, 2);
}

TEST_F(Readers, ASortedFileIsSplitByClass) {
  const Ran ran = run_loom("train " + net_ + " " + csv_ +
                           " --split 0.8 --normalize standard --epochs 30 --rate 0.02");
  EXPECT_THAT(ran.err, HasSubstr("[72 samples train, 18 validate: drawn by class with seed 1]"));
  const JsonValue trained = json("train " + net_ + " " + csv_ +
                                 " --split 0.8 --normalize standard --epochs 30 --rate 0.02");
  EXPECT_GT(trained.find("accuracy")->as_double("").value(), 0.9);
  const Ran front = run_loom("train " + net_ + " " + csv_ + " --split 0.8 --epochs 1 --no-shuffle");
  EXPECT_THAT(front.err, HasSubstr("[72 samples train, 18 validate: the first train, the last"));
}

TEST_F(Readers, LbfgsTakesAllSamplesAtOnce) {
  const std::string line =
      "train " + net_ + " " + csv_ + " --optimizer lbfgs --epochs 2 --rate 0.1 ";
  ok(line);
  ok(line + "--batch 90");
  ok(line + "--batch 30 --accumulate 3");
  for (const char* more : {"--batch 32", "--batch 30", "--batch 45 --accumulate 3"}) {
    const Ran ran = run_loom(line + more);
    EXPECT_EQ(ran.code, 2) << more;
    EXPECT_THAT(ran.err, HasSubstr("lbfgs needs all 90 samples in every update")) << more;
  }
}

}  // namespace
}  // namespace loom::core::test
