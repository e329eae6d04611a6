// Settings of loom train: sample weights, losses, optimizers.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "base/text.hpp"
#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "loom/training_options.hpp"

namespace loom::core {
namespace {

using test::Ran;
using test::run_loom;
using test::TempFolder;
using testing::HasSubstr;

class Settings : public testing::Test {
 protected:
  void SetUp() override {
    net_ = folder_.path() + "/net.json";
    ASSERT_EQ(run_loom("new mlp --in 2 --hidden 8 --out 3 -o " + net_).code, 0);
    std::string csv = "a,w,b,kind\n";
    for (int i = 0; i < 90; ++i) {
      const int label = i % 9 == 0 ? 2 : i % 3 == 0 ? 1 : 0;
      csv += std::to_string(label) + "." + std::to_string(i % 10) + "," +
             std::to_string(1 + i % 4) + "," + std::to_string(i % 7) + "," +
             (i % 11 == 5 ? "-100" : std::to_string(label)) + "\n";
    }
    csv_ = folder_.write("weighted.csv", csv);
  }
  Ran train(const std::string& more) const {
    return run_loom("train " + net_ + " " + csv_ + " --epochs 2 --threads 1 --json " + more);
  }
  std::string hash(const std::string& more) const {
    const Ran ran = train(more);
    const Result<JsonValue> json = parse_json(ran.out, "stdout");
    EXPECT_TRUE(json.ok()) << ran.err;
    return json.ok() ? json->find("weights_hash")->text() : ran.err;
  }

  TempFolder folder_;
  std::string net_, csv_;
};

TEST_F(Settings, WeightsOfSamplesAreAColumnByNameOrNumber) {
  const std::string by_name = hash("--sample-weights w --ignore-label -100");
  EXPECT_EQ(hash("--sample-weights 2 --ignore-label -100"), by_name);
  EXPECT_NE(hash("--sample-weights 2 --ignore-label -100 --class-weights 1,2,4"), by_name);
  EXPECT_NE(hash("--sample-weights w --ignore-label -100 --class-weights balanced"), by_name);
  EXPECT_NE(hash("--sample-weights w --ignore-label -100 --balance"), by_name);
}

TEST_F(Settings, ErrorsAreOneLine) {
  const struct {
    const char* more;
    const char* says;
  } cases[] = {
      {"--sample-weights w", "label -100 must be an integer from 0 to 2"},
      {"--sample-weights nothing --ignore-label -100", "no column 'nothing' for the weights"},
      {"--sample-weights 4 --ignore-label -100", "are in the last column"},
      {"--sample-weights w --ignore-label -100 --class-weights 1,2",
       "2 class weights, must be 3, one for each class"},
      {"--class-weights 1,x", "--class-weights is x, must be a number"},
      {"--loss focal --quantile 2", "--quantile"},
      {"--optimizer adamq", "did you mean 'adam'?"},
      {"--lookahead 1.5", "--lookahead is 1.5, must be an integer"},
      {"--lookahead 5,x", "--lookahead-share is x, must be a number"},
      {"--sample-weights w --ignore-label -100 --lookahead 5,2",
       "--lookahead-share is 2, must be above 0, up to 1"},
      {"--gradient-noise much", "--gradient-noise is much, must be a number"},
      {"--sample-weights w --ignore-label -100 --ema 0.9 --swa 2", "ema"},
      {"--folds 3 --split 0.5", "--folds"},
      {"--sample-weights w --ignore-label -100 --folds 91", "91 folds of 90 samples"},
      {"--sample-weights w --ignore-label -100 --ema 0.9 --native",
       "no float32 masters to average"},
  };
  for (const auto& c : cases) {
    const Ran ran = train(c.more);
    EXPECT_NE(ran.code, 0) << c.more;
    EXPECT_THAT(ran.err, HasSubstr(c.says)) << c.more;
  }
}

// A value of an option that is not its default, and that this network and these samples take.
std::string other_value(const OptionInfo& o) {
  const std::map<std::string_view, std::string> fitting = {{"optimizer", "lion"},
                                                           {"schedule", "linear"},
                                                           {"rule", "dfa"},
                                                           {"loss", "softmax_ce"},
                                                           {"clip", "norm"},
                                                           {"normalize", "range"},
                                                           {"class-weights", "1,2.5,1"},
                                                           {"metrics", "accuracy,macro_f1"},
                                                           {"milestones", "2,3"},
                                                           {"freeze", "'(0, 0, 0, 0)/bias'"},
                                                           {"unfreeze", "'*/bias'"},
                                                           {"rate-for", "'*/bias=0.5'"},
                                                           {"rate", "0.125"}};
  if (const auto found = fitting.find(o.flag); found != fitting.end()) return found->second;
  if (o.type == "bool") return "";
  if (o.type.starts_with("int")) return cat(o.low.value_or(0) + 3);
  return cat(o.low.value_or(0) + (o.high.value_or(o.low.value_or(0) + 1) - o.low.value_or(0)) / 4);
}

// Options as the core receives them: as text, which is in the JSON of the run.
TEST_F(Settings, EveryFlagOfTheDescriptionArrives) {
  const std::string data = "--sample-weights w --ignore-label -100 ";
  for (const OptionInfo& o : list_options(TrainerOptions{})) {
    if (o.flag.empty() || o.flag == "seed") continue;
    const std::string also = o.flag == "native"      ? "--dtype int8 "
                             : o.flag == "rule-gate" ? "--rule chain "
                                                     : "";
    const bool off = o.type == "bool" && o.text == "true";
    const std::string value = other_value(o);
    const Ran ran = train(cat(data, also, "--", off ? "no-" : "", o.flag, " ", value));
    if (o.flag == "heads") {  // the labels have one place
      EXPECT_THAT(ran.err, HasSubstr("heads"));
      continue;
    }
    const Result<JsonValue> json = parse_json(ran.out, "stdout");
    ASSERT_TRUE(json.ok()) << o.flag << ": " << ran.err;
    const JsonValue* const seen = json->find("options")->find(std::string(o.name));
    ASSERT_NE(seen, nullptr) << o.flag;
    TrainerOptions options;
    std::string text = o.type != "bool" ? value : off ? "false" : "true";
    std::erase(text, '\'');
    ASSERT_TRUE(set_option(options, o.name, text).ok()) << o.flag << " " << text;
    EXPECT_EQ(seen->text(), option_text(options, o.name).or_exit());
    EXPECT_NE(seen->text(), o.text);
  }
}

TEST_F(Settings, FlagsOfEarlierVersionsAreReadWithANote) {
  const std::string data = "--sample-weights w --ignore-label -100 ";
  const struct {
    const char *before, *now, *note;
  } cases[] = {
      {"--smoothing 0.1", "--label-smoothing 0.1", "--smoothing is now --label-smoothing"},
      {"--decay 0.5", "--weight-decay 0.5", "--decay is now --weight-decay"},
      {"--grad-checkpoint 1", "--checkpoint-cells 1", "is now --checkpoint-cells"},
      {"--clip norm:0.01", "--clip norm --clip-limit 0.01", "--clip norm --clip-limit 0.01"},
      {"--lookahead 3,0.25", "--lookahead 3 --lookahead-share 0.25", "--lookahead-share 0.25"},
      {"--gradient-noise 0.1,0.5", "--gradient-noise 0.1 --gradient-noise-fade 0.5", "-fade 0.5"},
      {"--class-weights balanced", "--balanced-weights", "is now --balanced-weights"},
  };
  for (const auto& c : cases) {
    const std::string plain = hash(data);
    EXPECT_EQ(hash(data + c.before), hash(data + c.now)) << c.before;
    const bool same_bits = std::string_view(c.before) == "--grad-checkpoint 1";
    EXPECT_EQ(hash(data + c.now) == plain, same_bits) << c.now;
    EXPECT_THAT(train(data + c.before).err, HasSubstr(c.note));
    EXPECT_EQ(train(data + c.now).err.find("is now"), std::string::npos) << c.now;
  }
}

TEST_F(Settings, EveryLossTrainsNumbersAndIsKeptInTheFile) {
  std::string csv;
  for (int i = 0; i < 60; ++i) {
    csv += std::to_string(i % 5) + "." + std::to_string(i % 7) + "," + std::to_string(i % 4) + "," +
           std::to_string(i % 2) + "\n";
  }
  const std::string file = folder_.write("numbers.csv", csv);
  const std::string net = folder_.path() + "/one.json";
  ASSERT_EQ(run_loom("new mlp --in 2 --hidden 8 --out 1 -o " + net).code, 0);
  for (const std::string loss : {"focal", "quantile", "poisson", "log_cosh", "hinge"}) {
    const std::string out = folder_.path() + "/" + loss + ".entity";
    const Ran ran =
        run_loom("train " + net + " " + file + " --epochs 40 --rate 0.01 --json --loss " + loss +
                 " --focal-gamma 1 --quantile 0.8 -o " + out);
    const Result<JsonValue> json = parse_json(ran.out, "stdout");
    ASSERT_TRUE(json.ok()) << ran.err;
    const auto& losses = json->find("losses")->elements();
    EXPECT_LT(losses.back().as_double("").value(), losses.front().as_double("").value()) << loss;
    const Ran measured = run_loom("eval " + out + " " + file + " --json");
    EXPECT_THAT(measured.out, HasSubstr("\"loss\"")) << measured.err;
    const Ran again = run_loom("train " + out + " " + file + " --epochs 1 --rate 0 --json");
    EXPECT_THAT(again.out, HasSubstr("\"loss\":\"" + loss + "\"")) << again.err;
  }
}

// Through files: a run that is stopped and resumed equals an uninterrupted one, with any averaging
// of its weights, and it saves the weights that it measured.
TEST_F(Settings, AveragesAndSlowWeightsAreResumedWithTheSameBits) {
  const std::string all =
      "--sample-weights w --ignore-label -100 --split 0.8 --schedule constant --optimizer ";
  for (const std::string how :
       {"adam --ema 0.9", "sgd --swa 2 --lookahead 3,0.5", "lamb --gradient-noise 0.1,0.55",
        "adafactor --ema 0.5 --lookahead 2,0.8", "muon --swa 3 --accumulate 2"}) {
    for (const std::string ending : {".safetensors", ".entity"}) {
      const std::string run = folder_.path() + "/run" + ending;
      const std::string common = "train " + net_ + " " + csv_ + " --json " + all + how;
      const Ran whole = run_loom(common + " --epochs 5 --threads 1");
      ASSERT_EQ(run_loom(common + " --epochs 2 --checkpoint " + run).code, 0) << how;
      const std::string out = folder_.path() + "/out" + ending;
      const Ran rest = run_loom(common + " --epochs 5 --threads 2 --force --resume " +
                                "--checkpoint " + run + " -o " + out);
      const Result<JsonValue> a = parse_json(whole.out, "whole"), b = parse_json(rest.out, "rest");
      ASSERT_TRUE(a.ok() && b.ok()) << how << rest.err;
      EXPECT_EQ(a->find("weights_hash")->text(), b->find("weights_hash")->text()) << how;
      const Ran eval =
          run_loom("eval " + out + " " + csv_ + " --sample-weights w --ignore-label -100 --json");
      const Result<JsonValue> c = parse_json(eval.out, "eval");
      ASSERT_TRUE(c.ok()) << eval.err;
      EXPECT_EQ(c->find("loss")->as_double("").value(),
                b->find("validation_losses")->elements().back().as_double("").value())
          << how << ending;
      std::remove(run.c_str());
      std::remove((run + ".previous").c_str());
    }
  }
}

TEST_F(Settings, FoldsAreMeasuredAndSavedEachForItself) {
  const std::string out = folder_.path() + "/net.entity";
  const Ran ran = train("--sample-weights w --ignore-label -100 --folds 4 -o " + out + " --best " +
                        folder_.path() + "/best.entity");
  const Result<JsonValue> json = parse_json(ran.out, "stdout");
  ASSERT_TRUE(json.ok()) << ran.err;
  const auto& folds = json->find("folds")->elements();
  ASSERT_EQ(folds.size(), 4u);
  double sum = 0, squares = 0;
  int64_t held = 0;
  for (size_t i = 0; i < folds.size(); ++i) {
    const double loss = folds[i].find("validation")->as_double("").value();
    sum += loss;
    squares += loss * loss;
    const int64_t validates = folds[i].find("validation_samples")->as_int("").value();
    held += validates;
    EXPECT_NEAR(static_cast<double>(validates), 22.5, 0.6);
    const std::string file = folder_.path() + "/net.fold" + std::to_string(i + 1) + ".entity";
    const Ran eval =
        run_loom("eval " + file + " " + csv_ + " --sample-weights w --ignore-label -100 --json");
    const Result<JsonValue> seen = parse_json(eval.out, "eval");
    ASSERT_TRUE(seen.ok()) << eval.err;
    EXPECT_EQ(seen->find("loss")->as_double("").value(), loss);
  }
  EXPECT_EQ(held, 90);
  EXPECT_NEAR(json->find("mean")->find("validation")->as_double("").value(), sum / 4, 1e-12);
  EXPECT_NEAR(json->find("std")->find("validation")->as_double("").value(),
              std::sqrt((squares - sum * sum / 4) / 3), 1e-9);
  EXPECT_EQ(run_loom("info " + folder_.path() + "/best.fold4.entity").code, 0);
  EXPECT_NE(run_loom("info " + out).code, 0);
  const Ran text = run_loom("train " + net_ + " " + csv_ +
                            " --sample-weights w --ignore-label -100 --epochs 1 --quiet --folds 2");
  EXPECT_THAT(text.out, HasSubstr("\nmean "));
}

TEST_F(Settings, CtcReadsPaddedLabelsFromColumns) {
  // Rows of three values; a label for each row that is not zero.
  std::string csv;
  for (int i = 0; i < 60; ++i) {
    std::string labels;
    int count = 0;
    for (int row = 0; row < 6; ++row) {
      const int kind = row % 2 == 0 ? (i * 7 + row * i) % 4 : 3;
      for (int k = 0; k < 3; ++k) csv += (k == kind ? "1," : "0,");
      if (kind < 3) labels += std::to_string(kind + 1) + (++count < 3 ? "," : "");
    }
    for (; count < 3; ++count) labels += count < 2 ? "-1," : "-1";
    csv += labels + "\n";
  }
  const std::string file = folder_.write("spell.csv", csv);
  const std::string net =
      folder_.write("spell.json", R"({"loom": 1, "grid": [2, 1, 1, 1], "input": [6, 3], "cells": [
        {"at": [0, 0, 0, 0], "type": "Dense", "in": 3, "out": 8, "activation": "tanh"},
        {"at": [1, 0, 0, 0], "type": "Dense", "in": 8, "out": 4}]})");
  const std::string out = folder_.path() + "/spell.entity";
  const Ran ran =
      run_loom("train " + net + " " + file +
               " --loss ctc --targets 3 --epochs 60 --rate 0.05 --split 0.8 --json -o " + out);
  const Result<JsonValue> json = parse_json(ran.out, "stdout");
  ASSERT_TRUE(json.ok()) << ran.err;
  EXPECT_GT(json->find("accuracy")->as_double("").value(), 0.9);
  const Ran eval = run_loom("eval " + out + " " + file + " --targets 3 --json");
  EXPECT_THAT(eval.out, HasSubstr("\"accuracy\"")) << eval.err;
  const Ran blank = run_loom("train " + net + " " + file + " --loss ctc --targets 3 --blank 2");
  EXPECT_THAT(blank.err, HasSubstr("not the blank 2"));
}

}  // namespace
}  // namespace loom::core
