// loom predict as a person or a script uses it: CSV, JSON and NPZ with equal contents, for samples
// with and without targets, and one-line errors.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "loom/loom.hpp"

namespace loom::core {
namespace {

using test::Ran;
using test::run_loom;
using test::TempFolder;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

class Predict : public testing::Test {
 protected:
  void SetUp() override {
    std::string labelled = "a,b,kind\n", bare = "a,b\n";
    for (int i = 0; i < 200; ++i) {
      const std::string row =
          std::to_string(std::sin(0.7 * i)) + "," + std::to_string(std::cos(1.3 * i));
      labelled += row + (std::sin(0.7 * i) > 0 ? ",up\n" : ",\"down, low\"\n");
      if (i < 5) bare += row + "\n";
    }
    data_ = folder_.write("data.csv", labelled);
    bare_ = folder_.write("bare.csv", bare);
    net_ = folder_.path() + "/net.entity";
    const std::string json = folder_.path() + "/net.json";
    ASSERT_EQ(run_loom("new mlp --in 2 --hidden 8 --out 2 -o " + json).code, 0);
    const Ran trained =
        run_loom("train " + json + " " + data_ + " --threads 1 --quiet --epochs 30 -o " + net_);
    ASSERT_EQ(trained.code, 0) << trained.err;
  }
  Ran predict(const std::string& data, const std::string& more) const {
    return run_loom("predict " + net_ + " " + data + " --threads 1 --quiet " + more);
  }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }

  TempFolder folder_;
  std::string data_, bare_, net_;
};

TEST_F(Predict, SaysTheSameOfSamplesWithAndWithoutTheirTargets) {
  const std::vector<std::string> with = lines_of(predict(data_, "").out),
                                 without = lines_of(predict(bare_, "").out);
  ASSERT_EQ(with.size(), 201u);
  ASSERT_EQ(without.size(), 6u);
  for (size_t i = 0; i < without.size(); ++i) EXPECT_EQ(without[i], with[i]);
}

// Columns are found by the names that they had in training, wherever they are.
TEST(Columns, AreMatchedByName) {
  const TempFolder folder;
  const std::string p = folder.path();
  const auto table = [&](const std::string& name, const std::vector<int>& order,
                         const std::string& header) {
    std::string text = header;
    for (int i = 0; i < 80; ++i) {
      const int a = i % 9, b = i * 7 % 100;
      const std::string cells[] = {std::to_string(a), std::to_string(b), a > 4 ? "up" : "down"};
      for (size_t c = 0; c < order.size(); ++c)
        text += (c > 0 ? "," : "") + cells[static_cast<size_t>(order[c])];
      text += "\n";
    }
    return folder.write(name, text);
  };
  const auto ok = [](const std::string& line) {
    const Ran ran = run_loom(line);
    EXPECT_EQ(ran.code, 0) << line << "\n" << ran.err;
    return ran.out;
  };
  const std::string plain = table("plain.csv", {0, 1, 2}, "a,b,kind\n");
  ok("new mlp --in 2 --hidden 8 --out 2 -o " + p + "/net.json");
  ok("train " + p + "/net.json " + plain +
     " --epochs 40 --rate 0.02 --normalize standard --quiet " + "-o " + p + "/net.entity");
  const auto scores = [&](const std::string& net, const std::string& data) {
    const std::string line = ok("eval " + net + " " + data);
    return line.substr(0, line.find(" samples,"));
  };
  const std::string answers = ok("predict " + p + "/net.entity " + plain);
  const std::string orders[] = {table("swapped.csv", {1, 0, 2}, "b,a,kind\n"),
                                table("first.csv", {2, 1, 0}, "kind,b,a\n"),
                                table("middle.csv", {0, 2, 1}, "a,kind,b\n"),
                                table("renamed.csv", {1, 0, 2}, "b,a,answer\n")};
  for (const char* format : {"entity", "safetensors", "json", "onnx", "npz"}) {
    const std::string net = p + "/as." + format;
    ok("convert " + p + "/net.entity " + net + " --with-weights --quiet");
    for (const std::string& data : orders) {
      SCOPED_TRACE(net + " " + data);
      EXPECT_EQ(scores(net, data), scores(net, plain));
    }
  }
  for (const std::string& data : orders)
    EXPECT_EQ(ok("predict " + p + "/net.entity " + data), answers) << data;
  EXPECT_EQ(ok("predict " + p + "/net.entity " + table("bare.csv", {1, 0}, "b,a\n")), answers);
  EXPECT_EQ(ok("predict " + p + "/net.entity " + table("none.csv", {0, 1}, "")), answers);
  // A validation file is read like the training file.
  ok("train " + p + "/net.json " + plain + " --validation " + orders[0] +
     " --epochs 2 --quiet -o " + p + "/checked.entity");
  const std::string other = table("other.csv", {0, 1, 2}, "a,c,kind\n");
  for (const char* verb : {"eval", "predict", "train"}) {
    const Ran ran = run_loom(std::string(verb) + " " + p + "/net.entity " + other + " " +
                             (std::string(verb) == "train" ? "-o " + p + "/x.entity" : ""));
    EXPECT_EQ(ran.code, 3) << verb;
    EXPECT_THAT(ran.err, HasSubstr("other.csv: has no column 'b', which the network was trained "
                                   "with; its columns are a, c, kind"));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  EXPECT_EQ(ok("predict " + p + "/net.entity " + other + " --columns-by-order"), answers);
}

TEST_F(Predict, FindsWhatItWasTrainedFor) {
  const std::vector<std::string> rows = lines_of(predict(data_, "").out);
  int right = 0;
  for (size_t i = 1; i < rows.size(); ++i) {
    const bool up = std::sin(0.7 * static_cast<double>(i - 1)) > 0;
    right += rows[i].starts_with(up ? "up" : "\"down, low\"") ? 1 : 0;
  }
  EXPECT_GT(right, 190);
}

TEST_F(Predict, JsonAndNpzHoldTheNumbersOfTheLibrary) {
  const Ran json = predict(bare_, "--json --proba");
  ASSERT_EQ(json.code, 0) << json.err;
  ASSERT_EQ(predict(bare_, "-o " + at("out.npz")).code, 0);
  const Result<JsonValue> parsed = parse_json(json.out, "stdout");
  ASSERT_TRUE(parsed.ok()) << parsed.error().str();
  ASSERT_EQ(parsed->elements().size(), 5u);
  const loom::Network net = loom::Network::load(net_).or_exit();
  const loom::Dataset data = loom::Dataset::from_file(bare_, net, {.inputs_only = true}).or_exit();
  const loom::Tensor y = net.predict(data.x()).or_exit();
  const std::span<const float> values = y.values<float>().or_exit();
  for (size_t i = 0; i < 5; ++i) {
    const JsonValue& row = parsed->elements()[i];
    double sum = 0;
    for (size_t c = 0; c < 2; ++c) {
      EXPECT_EQ(static_cast<float>(row.find("outputs")->elements()[c].as_double("").value()),
                values[i * 2 + c]);
      sum += row.find("probabilities")->elements()[c].as_double("").value();
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

TEST_F(Predict, ListsTheMostLikelyFirst) {
  const std::vector<std::string> rows = lines_of(predict(bare_, "--top 2").out);
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0], "label,top1,p1,top2,p2");
  const Result<JsonValue> json = parse_json(predict(bare_, "--top 2 --json").out, "stdout");
  ASSERT_TRUE(json.ok());
  for (const JsonValue& row : json->elements()) {
    const std::vector<JsonValue>& top = row.find("top")->elements();
    ASSERT_EQ(top.size(), 2u);
    EXPECT_EQ(top[0].find("label")->text(), row.find("label")->text());
    EXPECT_GE(top[0].find("probability")->as_double("").value(),
              top[1].find("probability")->as_double("").value());
  }
}

TEST_F(Predict, SaysWhatIsWrongInOneLine) {
  const Ran fresh = run_loom("predict " + at("net.json") + " " + bare_);
  EXPECT_EQ(fresh.code, 2);
  EXPECT_THAT(fresh.err, HasSubstr("this is a description without weights; train it first"));
  const Ran output = predict(bare_, "-o " + at("out.txt"));
  EXPECT_EQ(output.code, 2);
  EXPECT_THAT(output.err, HasSubstr("-o writes predictions; give a name with .csv, .json or .npz"));
  EXPECT_THAT(output.out, IsEmpty());
  const Ran itself = predict(bare_, "-o " + bare_);
  EXPECT_EQ(itself.code, 2);
  EXPECT_THAT(itself.err, HasSubstr("would replace DATA"));
}

}  // namespace
}  // namespace loom::core
