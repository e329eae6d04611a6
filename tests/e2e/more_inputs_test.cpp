// A network of two inputs as a person meets it: loom train, eval and predict with a file of arrays.
#include <gmock/gmock.h>

#include "e2e/program.hpp"

namespace loom::core {
namespace {

using test::Ran;
using test::run_loom;
using test::TempFolder;
using testing::HasSubstr;

// A safetensors file of float32 arrays of `samples` rows each.
struct Array {
  std::string name;
  int64_t width;
  std::vector<float> values;
};
std::string file_of(const std::vector<Array>& arrays, int64_t samples) {
  std::string header = "{", data;
  for (const Array& a : arrays) {
    const size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(a.values.data()), a.values.size() * 4);
    header += (header.size() > 1 ? ",\"" : "\"") + a.name + "\":{\"dtype\":\"F32\",\"shape\":[" +
              std::to_string(samples) + "," + std::to_string(a.width) + "],\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + data;
}

constexpr const char* kNetwork = R"({"loom": 1, "input": [2], "layers": [
  {"type": "Graph", "nodes": [
    {"name": "more", "type": "Input", "from": "input", "input": "more", "shape": [1]},
    {"name": "both", "from": ["input", "more"], "type": "Concat", "axis": 1},
    {"name": "y", "type": "Dense", "in": 3, "out": 1}
  ], "outputs": "y"}]})";

// y = x0 - x1 + 2 more
std::vector<Array> samples(int64_t n) {
  Array x{"x", 2, {}}, more{"more", 1, {}}, y{"y", 1, {}};
  for (int64_t i = 0; i < n; ++i) {
    const auto a = static_cast<float>(i * 7 % 11 - 5), b = static_cast<float>(i * 3 % 7 - 3),
               c = static_cast<float>(i * 5 % 13 - 6);
    x.values.insert(x.values.end(), {a / 5, b / 3});
    more.values.push_back(c / 6);
    y.values.push_back(a / 5 - b / 3 + c / 3);
  }
  return {x, more, y};
}

TEST(NetworksOfTwoInputs, AreTrainedEvaluatedAndAskedFromOneFile) {
  const TempFolder folder;
  const std::string net = folder.write("net.json", kNetwork);
  const std::string data = folder.write("d.safetensors", file_of(samples(60), 60));
  const std::string model = folder.path() + "/m.entity";
  const Ran trained =
      run_loom("train " + net + " " + data +
               " --epochs 100 --batch 8 --rate 0.05 --split 0.8 --quiet -o " + model);
  ASSERT_EQ(trained.code, 0) << trained.err;
  const Ran eval = run_loom("eval " + model + " " + data + " --json");
  ASSERT_EQ(eval.code, 0) << eval.err;
  const size_t at = eval.out.find("\"loss\":");
  ASSERT_NE(at, std::string::npos) << eval.out;
  EXPECT_LT(std::stod(eval.out.substr(at + 7)), 1e-3) << "the second input is needed for that";
  const Ran asked = run_loom("predict " + model + " " + data);
  ASSERT_EQ(asked.code, 0) << asked.err;
  EXPECT_EQ(std::count(asked.out.begin(), asked.out.end(), '\n') >= 60, true);
}

TEST(NetworksOfTwoInputs, SayInOneLineWhatAFileLacks) {
  const TempFolder folder;
  const std::string net = folder.write("net.json", kNetwork);
  std::vector<Array> all = samples(8);
  const auto report = [&](const std::string& name, const std::string& bytes) {
    const Ran ran = run_loom("train " + net + " " + folder.write(name, bytes) +
                             " --epochs 1 --quiet -o " + folder.path() + "/no.entity");
    EXPECT_NE(ran.code, 0);
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    return ran.err;
  };
  EXPECT_THAT(report("no.safetensors", file_of({all[0], all[2]}, 8)), HasSubstr("more"));
  EXPECT_THAT(report("d.csv", "1,2,3\n4,5,6\n"),
              HasSubstr("the network takes 2 inputs, a CSV holds one"));
  all[1].width = 2;
  all[1].values.resize(16);
  EXPECT_THAT(report("wide.safetensors", file_of(all, 8)), HasSubstr("must be [8, 1]"));
}

}  // namespace
}  // namespace loom::core
