// loom new, train and eval as a person or a script meets them: files in, files out, the same bits
// after a resumed run, and errors of one line with their exit codes.
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "layers/core/layer.hpp"
#include "loom/training_kinds.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

// ", signsgd": those that tests/extend adds after the last released one.
std::string toy_optimizers() {
  std::string names;
  for (uint8_t i = static_cast<uint8_t>(loom::OptimizerKind::sophia) + 1;; ++i) {
    const std::string_view name = loom::optimizer_name(static_cast<loom::OptimizerKind>(i));
    if (name == "unknown") return names;
    names += ", " + std::string(name);
  }
}

using test::Ran;
using test::run_loom;
using test::TempFolder;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

JsonValue parse(const Ran& ran) {
  Result<JsonValue> value = parse_json(ran.out, "stdout");
  EXPECT_TRUE(value.ok()) << ran.out << ran.err;
  return value.ok() ? std::move(*value) : JsonValue();
}

std::string text_of(const JsonValue& json, std::string_view key) {
  return json.find(key) == nullptr ? "" : json.find(key)->text();
}
double number_of(const JsonValue& json, std::string_view key) {
  return json.find(key) == nullptr ? NAN : json.find(key)->as_double("").value();
}

// Three classes of points on rings; text labels, a header.
std::string rings_csv(int samples) {
  std::string csv = "a,b,kind\n";
  for (int i = 0; i < samples; ++i) {
    const double angle = 0.7 * i, radius = 1 + i % 3;
    csv +=
        std::to_string(radius * std::cos(angle)) + "," + std::to_string(radius * std::sin(angle));
    csv += i % 3 == 0 ? ",red\n" : i % 3 == 1 ? ",green\n" : ",\"blue, dark\"\n";
  }
  return csv;
}

class Train : public testing::Test {
 protected:
  void SetUp() override {
    csv_ = folder_.write("rings.csv", rings_csv(300));
    net_ = folder_.path() + "/net.json";
    ASSERT_EQ(run_loom("new mlp --in 2 --hidden 24,16 --out 3 --activation tanh -o " + net_).code,
              0);
  }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  // loom train NET CSV with `more`.
  Ran train(const std::string& more) const {
    return run_loom("train " + net_ + " " + csv_ + " --threads 1 " + more);
  }

  TempFolder folder_;
  std::string csv_, net_;
};

TEST_F(Train, LearnsFromACsvAndEvaluatesTheWeights) {
  const Ran ran = train("--split 0.8 --epochs 40 --rate 0.01 -o " + at("w.safetensors") +
                        " --plot " + at("loss.svg"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("epoch 1/40  loss "));
  EXPECT_THAT(ran.out, HasSubstr("weights "));
  EXPECT_THAT(folder_.read("loss.svg"), StartsWith("<svg "));
  const Ran measured = run_loom("eval " + at("w.safetensors") + " " + csv_ + " --json --threads 1");
  ASSERT_EQ(measured.code, 0) << measured.err;
  const JsonValue json = parse(measured);
  EXPECT_GT(number_of(json, "accuracy"), 0.95) << measured.out;
  const Ran described = run_loom("eval " + net_ + " " + csv_ + " --json --threads 2 --weights " +
                                 at("w.safetensors"));
  EXPECT_EQ(text_of(parse(described), "weights_hash"), text_of(json, "weights_hash"));
  EXPECT_EQ(number_of(parse(described), "loss"), number_of(json, "loss"));
}

TEST_F(Train, TheSameBitsForAnyThreadsAndInstructionSet) {
  const std::string common = "--epochs 2 --json --dtype int8 --split 0.9";
  const JsonValue a = parse(train(common));
  EXPECT_EQ(text_of(a, "weights_hash").size(), 32u);
  const JsonValue b =
      parse(run_loom("train " + net_ + " " + csv_ + " " + common + " --threads 2 --isa scalar"));
  EXPECT_EQ(text_of(a, "weights_hash"), text_of(b, "weights_hash"));
  const JsonValue c = parse(train(common + " --seed 2"));
  EXPECT_NE(text_of(a, "weights_hash"), text_of(c, "weights_hash"));
}

// Two epochs, a new process, two more: the weights of four epochs at once. 240 samples in batches
// of 32 by threes: gradients wait for an update across the end of an epoch.
TEST_F(Train, ResumesWithTheSameBits) {
  for (const std::string more :
       {"--optimizer adam --normalize standard", "--optimizer momentum --accumulate 3",
        "--optimizer lion --dtype int4 --clip norm:1",
        "--optimizer lbfgs --batch 120 --accumulate 2 --rate 0.1", "--native --dtype bfloat16",
        "--native --dtype int8 --optimizer sgd --rate 0.1",
        "--optimizer sgd --decay 0.5 --dtype uint4 --rate 0.05", "--rule dfa --accumulate 3",
        "--rule fixed-dtp --rule-beta 0.3 --native --dtype int8"}) {
    const std::string common = more + " --json --split 0.8 --schedule step --every 1 ";
    const std::string file = " --checkpoint " + at("run.safetensors");
    std::filesystem::remove(at("run.safetensors"));
    std::filesystem::remove(at("run.safetensors.previous"));
    const JsonValue straight = parse(train(common + "--epochs 4"));
    ASSERT_EQ(train(common + "--epochs 2" + file).code, 0);
    const JsonValue resumed = parse(train(common + "--epochs 4 --resume" + file));
    EXPECT_EQ(text_of(resumed, "weights_hash"), text_of(straight, "weights_hash")) << more;
    EXPECT_EQ(dump_json(*resumed.find("losses")), dump_json(*straight.find("losses")));
    // A damaged file: the one before it is taken.
    folder_.write("run.safetensors", "damaged");
    const Ran again = train(common + "--epochs 4 --resume" + file);
    EXPECT_EQ(text_of(parse(again), "weights_hash"), text_of(straight, "weights_hash"));
    EXPECT_THAT(again.err, HasSubstr(".previous: 3 epochs are done"));
  }
}

TEST_F(Train, ResumesBatchNormAndDropoutWithTheSameBits) {
  const std::string net = folder_.write("net.json", R"({"loom": 1, "input": [2], "layers": [
      {"type": "Dense", "in": 2, "out": 24}, {"type": "BatchNorm", "channels": 24},
      {"type": "Dropout", "rate": 0.2}, {"type": "Dense", "in": 24, "out": 3}]})");
  ASSERT_EQ(net, net_);
  for (const std::string more : {"", "--accumulate 3", "--batch 50 --dtype int8"}) {
    const std::string common = more + " --json --split 0.8 --schedule constant ";
    for (const char* file : {"run.safetensors", "run.entity"}) {
      const std::string checkpoint = " --checkpoint " + at(file);
      std::filesystem::remove(at(file));
      const JsonValue straight = parse(train(common + "--epochs 4 --force -o " + at("net.entity")));
      ASSERT_EQ(train(common + "--epochs 2" + checkpoint).code, 0);
      const JsonValue resumed = parse(train(common + "--epochs 4 --resume" + checkpoint));
      EXPECT_EQ(text_of(resumed, "weights_hash"), text_of(straight, "weights_hash")) << more;
      EXPECT_EQ(dump_json(*resumed.find("losses")), dump_json(*straight.find("losses")));
    }
    // In inference a sample does not depend on its batch.
    const auto evaluated = [&](const char* batch) {
      return number_of(parse(run_loom("eval " + at("net.entity") + " " + csv_ +
                                      " --json --threads 1 --batch " + batch)),
                       "loss");
    };
    EXPECT_EQ(evaluated("1"), evaluated("64")) << more;
  }
}

// A feedback link into the second of three layers: docs/state.md.
TEST_F(Train, KeepsFeedbackOutOfBatchesUnlessItIsCarried) {
  const std::string net = folder_.write("net.json", R"({"loom": 1, "grid": [1, 1, 4, 1],
    "input": [2], "cells": [
      {"at": [0, 0, 0, 0], "type": "Dense", "in": 2, "out": 8, "activation": "tanh"},
      {"at": [0, 0, 1, 0], "type": "Residual", "link": {"from": [0, 0, 2, 0], "feedback": true}},
      {"at": [0, 0, 2, 0], "type": "Dense", "in": 8, "out": 8, "activation": "tanh"},
      {"at": [0, 0, 3, 0], "type": "Dense", "in": 8, "out": 3}]})");
  ASSERT_EQ(net, net_);
  const auto evaluated = [&](const std::string& more) {
    const Ran ran =
        run_loom("eval " + at("net.entity") + " " + csv_ + " --json --threads 1 " + more);
    return number_of(parse(ran), "loss");
  };
  for (const std::string carry : {"", "--carry-feedback "}) {
    const std::string common = carry + "--json --no-shuffle --schedule constant ";
    const std::string file = " --checkpoint " + at("run.entity");
    std::filesystem::remove(at("run.entity"));
    const JsonValue straight = parse(train(common + "--epochs 4 --force -o " + at("net.entity")));
    ASSERT_EQ(train(common + "--epochs 2" + file).code, 0);
    const JsonValue resumed = parse(train(common + "--epochs 4 --resume" + file));
    EXPECT_EQ(text_of(resumed, "weights_hash"), text_of(straight, "weights_hash")) << carry;
    const double whole = evaluated(carry + "--batch 300");
    for (const std::string batch : {"--batch 1", "--batch 7", "--batch 64"}) {
      EXPECT_EQ(evaluated(carry + batch) == whole, carry.empty()) << carry << batch;
    }
  }
  const Ran other = train("--epochs 4 --no-shuffle --schedule constant --resume --checkpoint " +
                          at("run.entity"));
  EXPECT_THAT(other.err, HasSubstr("carry_feedback was true, now it does not count"));
}

// Killed as soon as a second checkpoint is there, which may be in the middle of writing the third.
TEST_F(Train, GoesOnAfterAKill) {
  const std::string common = " --json --epochs 500 --batch 4 --quiet ";
  const std::string run = at("run.safetensors"), file = "--checkpoint " + run;
  const JsonValue straight = parse(train(common));
  const std::string begin = std::string("'") + loom_test::program_path() + "' train " + net_ + " " +
                            csv_ + " --threads 1" + common + file + " >/dev/null & ";
  const std::string end = "while [ ! -e " + run + ".previous ]; do :; done; kill -9 $!; wait $!";
  const int status = std::system(("{ " + begin + end + "; } 2>/dev/null").c_str());
  EXPECT_EQ(WEXITSTATUS(status), 137) << "done before the kill";
  const Ran resumed = train(" --json --epochs 500 --batch 4 " + file + " --resume");
  EXPECT_THAT(resumed.err, HasSubstr(" epochs are done"));
  EXPECT_EQ(text_of(parse(resumed), "weights_hash"), text_of(straight, "weights_hash"));
}

TEST_F(Train, RefusesTheCheckpointOfAnotherRun) {
  const std::string file = " --checkpoint " + at("run.safetensors");
  ASSERT_EQ(train("--epochs 1" + file).code, 0);
  const Ran batch = train("--epochs 1 --resume --batch 16" + file);
  EXPECT_EQ(batch.code, 2);
  EXPECT_EQ(batch.err, "loom: " + at("run.safetensors") +
                           ": belongs to a run with other options: batch was 32, now it is 16; "
                           "give the same, or leave --resume out\n");
  ASSERT_EQ(run_loom("new mlp --in 2 --hidden 25 --out 3 --force -o " + net_).code, 0);
  const Ran network = train("--epochs 1 --resume" + file);
  EXPECT_EQ(network.code, 2);
  EXPECT_THAT(network.err, HasSubstr("belongs to another network"));
  EXPECT_EQ(std::count(network.err.begin(), network.err.end(), '\n'), 1);
}

// Each sample has two labels, one per head of the prediction.
TEST_F(Train, LearnsSeveralHeads) {
  std::string csv;
  for (int i = 0; i < 200; ++i) {
    const double a = std::sin(0.7 * i), b = std::cos(1.3 * i);
    csv += std::to_string(a) + "," + std::to_string(b) + (a < 0 ? ",0," : ",1,") +
           (b < -0.3  ? "0\n"
            : b < 0.3 ? "1\n"
                      : "2\n");
  }
  const std::string data = folder_.write("heads.csv", csv), weights = at("w.safetensors");
  ASSERT_EQ(run_loom("new mlp --in 2 --hidden 24 --out 5 --force -o " + net_).code, 0);
  const std::string begin = "train " + net_ + " " + data + " --targets 2 --json --threads 1 ";
  const Ran ran = run_loom(begin + "--heads 2,3 --split 0.8 --epochs 60 --rate 0.02 -o " + weights);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_GT(number_of(parse(ran), "accuracy"), 0.95);
  const Ran measured = run_loom("eval " + weights + " " + data + " --targets 2 --json");
  EXPECT_GT(number_of(parse(measured), "accuracy"), 0.95) << measured.err;
  EXPECT_EQ(run_loom(begin + "--heads 2,2").err,
            "loom: the heads have 4 values together, the network gives 5\n");
  EXPECT_THAT(run_loom(begin + "--heads 3,2").err,
              HasSubstr("label 2 must be an integer from 0 to 1"));
}

TEST_F(Train, SavesTheBestEpochAndTheStatsOfLayers) {
  // The rate is far too high at the end, so the best epoch is not the last.
  const Ran ran = train(
      "--split 0.8 --epochs 12 --optimizer sgd --schedule linear --rate 0 "
      "--floor 40 --json -o " +
      at("last.safetensors") + " --best " + at("best.safetensors") + " --layer-stats " +
      at("stats.csv"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto loss = [&](const std::string& file) {
    return number_of(parse(run_loom("eval " + at(file) + " " + csv_ + " --json")), "loss");
  };
  EXPECT_LT(loss("best.safetensors"), loss("last.safetensors"));
  const std::string stats = folder_.read("stats.csv");
  EXPECT_THAT(stats, StartsWith("epoch,cell,layer,pass,mean,std,min,max,active,total\n"
                                "1,\"(0, 0, 0, 0)\",Dense,forward,"));
  // Twelve epochs, three layers, forward and backward.
  EXPECT_EQ(std::count(stats.begin(), stats.end(), '\n'), 1 + 12 * 3 * 2);
}

TEST_F(Train, VerifiesTrainingOfEveryKindAndOfANetwork) {
  const Ran all = run_loom("verify training --steps 3 --isa scalar --threads 1");
  ASSERT_EQ(all.code, 0) << all.err;
  const auto lines = static_cast<size_t>(std::count(all.out.begin(), all.out.end(), '\n'));
  EXPECT_EQ(lines, layer_table().size());
  EXPECT_GE(lines, 20u);
  EXPECT_EQ(run_loom("verify training --steps 3 --threads 3").out, all.out);
  const std::string lstm = run_loom("verify training --steps 3 --kind LSTM").out;
  EXPECT_THAT(lstm, StartsWith("LSTM "));
  EXPECT_THAT(all.out, HasSubstr(lstm));
  EXPECT_NE(run_loom("verify training --steps 4 --kind LSTM").out, lstm);
  // Ids stay below the table of the network, whatever its size.
  ASSERT_EQ(run_loom("new transformer --vocab 19 --width 16 --heads 2 --layers 1 --time 8 --force "
                     "-o " +
                     net_)
                .code,
            0);
  const Ran one = run_loom("verify training " + net_ + " --steps 3 --isa scalar --threads 1");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run_loom("verify training " + net_ + " --steps 3 --threads 2").out, one.out);
  EXPECT_THAT(run_loom("verify training --kind Foo").err,
              StartsWith("loom: --kind: unknown layer kind 'Foo'; known are Dense, "));
}

TEST_F(Train, GradientCheckpointsLeaveTheSameBits) {
  const std::string common = "--epochs 3 --json";
  EXPECT_EQ(text_of(parse(train(common)), "weights_hash"),
            text_of(parse(train(common + " --grad-checkpoint 1")), "weights_hash"));
}

TEST_F(Train, CalibratesRangesOfFourBits) {
  const std::string weights = at("w.safetensors");
  ASSERT_EQ(train("--epochs 40 --rate 0.01 -o " + weights).code, 0);
  const std::string eval = "eval " + weights + " " + csv_ + " --json --dtype int4";
  const JsonValue plain = parse(run_loom(eval)),
                  chosen = parse(run_loom(eval + " --calibrate " + csv_));
  ASSERT_EQ(chosen.find("calibration")->elements().size(), 3u);
  double before = 0, after = 0;
  for (const JsonValue& matrix : chosen.find("calibration")->elements()) {
    before += number_of(matrix, "plain_error");
    after += number_of(matrix, "error");
  }
  EXPECT_LT(after, before);
  EXPECT_NE(number_of(chosen, "loss"), number_of(plain, "loss"));
  EXPECT_THAT(run_loom("eval " + weights + " " + csv_ + " --calibrate " + csv_).err,
              HasSubstr("--calibrate: no matrix is below 16 bits in float32; give --dtype"));
}

// Big-endian IDX files: 8 x 6 images, bright in the upper or the lower half.
TEST_F(Train, LearnsFromIdx) {
  std::string images("\0\0\x08\x03\0\0\0\x40\0\0\0\x08\0\0\0\x06", 16);
  std::string labels("\0\0\x08\x01\0\0\0\x40", 8);
  for (int i = 0; i < 64; ++i) {
    for (int p = 0; p < 48; ++p) images += static_cast<char>((p < 24) == (i % 2 == 0) ? 200 : i);
    labels += static_cast<char>(i % 2);
  }
  const std::string x = folder_.write("x.idx", images), y = folder_.write("y.idx", labels);
  ASSERT_EQ(run_loom("new cnn --picture 1,8,6 --filters 4 --out 2 --force -o " + net_).code, 0);
  const Ran ran =
      run_loom("train " + net_ + " " + x + " --labels " + y + " --split 0.75 --json --rate 0.01");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(number_of(parse(ran), "accuracy"), 1.0);
  EXPECT_EQ(number_of(parse(ran), "train_samples"), 48);
}

struct Bad {
  std::string csv, arguments, message;
  int code;
};

TEST_F(Train, SaysWhatIsWrongInOneLine) {
  const Bad rows[] = {
      {"1,2,red\n1,nan,red\n", "", "D: at byte 10: row 2, column 2: the value is not finite", 3},
      {"1,2,red\n1,x,red\n", "", "D: at byte 10: row 2, column 2: 'x' is not a number", 3},
      {"1,2,0\n1,2,3\n", "",
       "D: at byte 10: row 2, column 3: label 3 must be an integer from 0 to 2", 3},
      {"1,2,a\n1,2,b\n1,2,c\n1,2,d\n", "",
       "D: at byte 22: row 4, column 3: 'd' would be class 3, but the network has 3 outputs", 3},
      {"1,2\n", "", "D: 2 columns, must be 2 for the network's input [2] and 1 for the target", 3},
      {"", "", "D: the dataset is empty: no bytes", 3},
      {"a,b,kind\n", "", "D: the dataset is empty: no samples", 3},
      {"1,2,0\n", "--split 0.5", "a split that trains 1 of 1 samples; both parts need at least one",
       2},
      {"1,2,0\n", "--optimizer adm",
       "unknown optimizer 'adm'; choose from sgd, momentum, nesterov, rmsprop, adam, adamw, lion, "
       "lbfgs, adagrad, adadelta, nadam, adamax, radam, lamb, adafactor, muon, kfac, sophia" +
           toy_optimizers() + "; did you mean 'adam'?",
       2},
      {"1,2,0\n", "--loss mse",
       "D: a target has 1 values, the network gives 3; --targets says how many columns there are",
       3},
      {"1,2,0\n", "--clip-limit x", "--clip-limit is x, must be a number", 2},
      {"1,,0\n1,2,0\n", "",
       "D: at byte 2: row 1, column 2: an empty field among numbers; say with --header yes or "
       "--header no whether this row is a header",
       3},
      {"a,2,0\n1,2,0\n", "",
       "D: at byte 0: row 1, column 1: 'a' among numbers; say with --header yes or --header no "
       "whether this row is a header",
       3},
      {"a,2,0\n1,2,0\n", "--header maybe", "unknown header 'maybe'; choose from auto, yes, no", 2},
      {"a,2,0\n1,2,0\n", "--header no", "D: at byte 0: row 1, column 1: 'a' is not a number", 3},
      {"1,2,0\n", "--memory 1M",
       "--memory 1M: must be at least 64 MB; the program itself takes 32 MB", 2},
      {"1,2,0\n", "--memory much", "--memory: 'much' is not a size; write for example 512M or 2G",
       2},
      {"1,2,0\n", "--labels D",
       "D: a CSV holds its targets in its last columns; leave --labels out", 2},
      {"1,2,0\n", "--rate 1000 --optimizer sgd --loss softmax_ce --normalize stand",
       "unknown normalization 'stand'; choose from none, standard, range, as_trained", 2},
  };
  for (const Bad& row : rows) {
    const std::string data = folder_.write("bad.csv", row.csv);
    const auto named = [&](std::string text) {
      if (text.starts_with("D:")) text = data + text.substr(1);
      if (text.ends_with(" D")) text = text.substr(0, text.size() - 1) + data;
      return text;
    };
    const Ran ran = run_loom("train " + net_ + " " + data + " " + named(row.arguments));
    EXPECT_EQ(ran.err, "loom: " + named(row.message) + "\n");
    EXPECT_EQ(ran.code, row.code) << row.message;
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

TEST_F(Train, SaysWhatWasTakenAsTheHeader) {
  const Ran noted = train("--epochs 1 -o none");
  ASSERT_EQ(noted.code, 0) << noted.err;
  EXPECT_EQ(noted.err, "[" + csv_ + ": the first row is taken as the header: a, b, kind]\n");
  EXPECT_THAT(train("--epochs 1 --quiet").err, IsEmpty());
}

TEST_F(Train, RefusesBadNetworksAndFiles) {
  const std::string bad =
      folder_.write("bad.json", R"({"loom":1,"input":[2],"layers":[{"type":1}]})");
  const Ran layer = run_loom("train " + bad + " " + csv_);
  EXPECT_EQ(layer.code, 3);
  EXPECT_EQ(layer.err, "loom: " + bad +
                           ": at byte 40: layers[0].type: expected the name of a layer, found 1\n");
  const Ran absent = run_loom("train " + net_ + " " + at("none.csv"));
  EXPECT_EQ(absent.code, 3);
  EXPECT_THAT(absent.err, HasSubstr("none.csv: cannot open: No such file"));
  const Ran description = run_loom("eval " + net_ + " " + csv_);
  EXPECT_EQ(description.code, 2);
  EXPECT_EQ(description.err,
            "loom: " + net_ + ": this is a description; give its weights with --weights FILE\n");
  const Ran twice = run_loom("new mlp --in 2 --out 2 -o " + net_);
  EXPECT_EQ(twice.code, 2);
  EXPECT_EQ(twice.err, "loom: " + net_ + ": exists already; --force replaces it\n");
  EXPECT_EQ(run_loom("train " + net_ + " " + csv_ + " --resume").code, 2);
}

// The digits of the MNIST test set, 8,000 to train and 2,000 to test; needs the shared data.
class Mnist : public testing::Test {
 protected:
  void SetUp() override {
    const std::string data = loom_test::source_path("../shared/data/mnist-t10k-");
    images_ = data + "images-idx3-ubyte.gz";
    if (!std::filesystem::exists(images_)) GTEST_SKIP() << "no shared data";
    labels_ = data + "labels-idx1-ubyte.gz";
  }
  double accuracy(const std::string& network, const std::string& more) const {
    const TempFolder folder;
    const std::string net = folder.path() + "/net.json";
    EXPECT_EQ(run_loom("new " + network + " -o " + net).code, 0);
    const Ran ran = run_loom("train " + net + " " + images_ + " --labels " + labels_ +
                             " --split 0.8 --json " + more);
    EXPECT_EQ(ran.code, 0) << ran.err;
    return number_of(parse(ran), "accuracy");
  }
  std::string images_, labels_;
};

TEST_F(Mnist, DenseLayers) {
  const std::string mlp = "mlp --in 784 --hidden 256,128 --out 10";
  const double f32 = accuracy(mlp, "--epochs 5");
  EXPECT_GE(f32, 0.955);
  EXPECT_GE(accuracy(mlp, "--epochs 5 --dtype int4"), f32 - 0.01);
  EXPECT_GE(accuracy(mlp, "--epochs 5 --dtype ternary"), f32 - 0.03);
}

TEST_F(Mnist, Convolutions) {
  EXPECT_GE(accuracy("cnn", "--epochs 8"), 0.975);
}

}  // namespace
}  // namespace loom::core
