// The program with damaged files (issue 37, lines 11, 12, 33): exit 3 and one line, never 0 with
// garbage and never 2. The damage is random: bytes cut, flipped, zeroed, and files under another
// name.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "e2e/program.hpp"
#include "io/weights/safetensors_write.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

// Sequential(Linear(4, 16), Linear(16, 3)) with a module between; value `at` of 2.weight is `odd`.
std::string state_dict(float odd = 0.5f, size_t at = 5) {
  const std::vector<float> first(64, 0.25f), bias(16, 0.5f), last_bias(3, -0.5f);
  std::vector<float> last(48, -0.25f);
  last[at] = odd;
  std::vector<SafeOutput> out;
  out.push_back({"0.weight", SafeDType::f32, {16, 4}, std::as_bytes(std::span(first))});
  out.push_back({"0.bias", SafeDType::f32, {16}, std::as_bytes(std::span(bias))});
  out.push_back({"2.weight", SafeDType::f32, {3, 16}, std::as_bytes(std::span(last))});
  out.push_back({"2.bias", SafeDType::f32, {3}, std::as_bytes(std::span(last_bias))});
  return *safetensors_bytes(std::move(out), {});
}

void expect_one_line(const Ran& ran, int code, const std::string& says) {
  EXPECT_EQ(ran.code, code) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr(says));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
}

TEST(DamagedFiles, AStateDictAsksForItsActivation) {
  const TempFolder folder;
  const std::string model = folder.write("w.safetensors", state_dict());
  const std::string data = folder.write("d.csv", "1,2,3,4,0\n2,3,4,5,1\n3,4,5,6,2\n1,1,1,1,0\n");
  const std::string inputs = folder.write("x.csv", "1,2,3,4\n2,3,4,5\n");
  const std::string out = folder.path() + "/o";
  const std::string asks = "weights do not tell the activation after '0' (--activation NAME";
  for (const std::string& line :
       {"predict " + model + " " + inputs, "eval " + model + " " + data,
        "train " + model + " " + data + " --epochs 1", "convert " + model + " " + out + ".entity",
        "quantize " + model + " " + out + ".entity --dtype int8"}) {
    SCOPED_TRACE(line);
    const bool writes = line.starts_with("convert") || line.starts_with("quantize");
    const std::string force = writes ? " --force" : "";
    expect_one_line(run_loom(line + force), 4, asks);
    const Ran settled = run_loom(line + " --activation tanh" + force);
    EXPECT_EQ(settled.code, 0) << settled.err;
    expect_one_line(run_loom(line + " --activation sinus" + force), 2, "sinus");
  }
  // tanh: 3 outputs of 16 hidden values that are all equal.
  const Ran report = run_loom("predict " + model + " " + inputs + " --activation tanh --json");
  const double hidden = std::tanh(0.25 * 10 + 0.5);
  EXPECT_THAT(report.out, HasSubstr(std::to_string(-0.25 * 16 * hidden - 0.5).substr(0, 6)));
  // info computes nothing, and lists unknown settings.
  const Ran info = run_loom("info " + model);
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("'0' is followed by relu"));
}

TEST(DamagedFiles, WeightsThatAreNotFiniteAreNamed) {
  const TempFolder folder;
  const std::string nan = folder.write("nan.safetensors", state_dict(NAN, 35));
  const std::string large = folder.write("large.safetensors", state_dict(1e6f));
  const std::string inputs = folder.write("x.csv", "1,2,3,4\n2,3,4,5\n");
  const std::string tail = " --activation tanh",
                    out = " " + folder.path() + "/o.entity --force --quiet";
  const std::string says = "'2.weight' is NaN at [2, 3]";
  expect_one_line(run_loom("quantize " + nan + out + " --dtype int8" + tail), 3, says);
  expect_one_line(run_loom("convert " + nan + out + tail), 3, says);
  expect_one_line(run_loom("predict " + nan + " " + inputs + tail), 3, says);
  expect_one_line(run_loom("convert " + large + out + " --dtype f16" + tail), 3,
                  "'2.weight' is too large for float16 at [0, 5]");
  EXPECT_EQ(run_loom("convert " + large + out + " --dtype bf16" + tail).code, 0);
  EXPECT_EQ(run_loom("convert " + nan + out + " --allow-nonfinite" + tail).code, 0);
  // The file that was written so is refused in turn, unless it is allowed again.
  const std::string entity = folder.path() + "/o.entity ";
  expect_one_line(run_loom("predict " + entity + inputs), 3, "is NaN at [2, 3]");
  EXPECT_EQ(run_loom("predict " + entity + inputs + " --allow-nonfinite").code, 0);
}

TEST(DamagedFiles, FilesUnderAnotherNameAreTold) {
  const TempFolder folder;
  const std::pair<std::string, std::string> files[] = {
      {"<!DOCTYPE html><html>not found</html>", "is a web page (HTML); "},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
       "is a Git LFS pointer"},
      {std::string("\x80\x02}q\x00.", 6), "is a Python pickle"},
      {std::string(4096, '\0'), "holds zero bytes"},
      {"%PDF-1.7 ...", "is a PDF document"},
      {"", "is empty"},
  };
  const std::string net = folder.path() + "/net.json";
  ASSERT_EQ(run_loom("new mlp --in 2 --hidden 4 --out 3 -o " + net).code, 0);
  for (const auto& [bytes, says] : files) {
    for (const char* name : {"m.entity", "m.gguf", "m.safetensors", "m.onnx", "m.json", "m.bin",
                             "m.npz", "m.tflite", "m.pt"}) {
      const std::string path = folder.write(name, bytes);
      SCOPED_TRACE(says + " " + name);
      expect_one_line(run_loom("info " + path), 3, says);
      expect_one_line(run_loom("run " + path + " -p x"), 3, says);
      expect_one_line(run_loom("convert " + path + " " + folder.path() + "/o.entity"), 3, says);
    }
    expect_one_line(run_loom("train " + net + " " + folder.write("d.csv", bytes)), 3,
                    bytes.empty() ? "is empty" : says);
    expect_one_line(run_loom("onnx " + folder.write("g.onnx", bytes)), 3, says);
  }
}

// 400 random faults in good files: the program opens the file, or exits with 3 (4: a valid file
// with unsupported content), in one line.
TEST(DamagedFiles, RandomDamageIsExitThreeInOneLine) {
  const TempFolder folder;
  const std::string p = folder.path() + "/";
  ASSERT_EQ(run_loom("new mlp --in 4 --hidden 6 --out 3 -o " + p + "net.json").code, 0);
  const std::string weights = folder.write("w.safetensors", state_dict());
  const std::string ends[] = {".entity", ".onnx", ".npz", ".safetensors", ".json"};
  for (const std::string& end : ends) {
    const std::string how = end == ".json" ? " --with-weights" : "";
    const Ran made = run_loom("convert " + weights + " " + p + "good" + end +
                              " --activation tanh --force" + how);
    ASSERT_EQ(made.code, 0) << made.err;
  }
  uint64_t state = 37;
  const auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    const std::string& end = ends[draw(std::size(ends))];
    std::string bytes = folder.read("good" + end);
    switch (draw(4)) {
      case 0: bytes.resize(draw(bytes.size())); break;
      case 1: bytes[draw(bytes.size())] ^= static_cast<char>(1 + draw(255)); break;
      case 2: bytes.replace(draw(bytes.size()), 16, std::string(16, '\0')); break;
      default: break;  // the name alone is wrong
    }
    const std::string& name = draw(2) == 0 ? end : ends[draw(std::size(ends))];
    const std::string path = folder.write("bad" + name, bytes);
    const Ran ran = run_loom("convert " + path + " " + p + "out.entity --force --quiet");
    SCOPED_TRACE(end + " as " + name + ", fault " + std::to_string(i) + ": " + ran.err);
    EXPECT_TRUE(ran.code == 0 || ran.code == 3 || ran.code == 4) << ran.code;
    if (ran.code == 0) continue;
    ++refused;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
  }
  EXPECT_GT(refused, 150);
}

// Grammars, schemas and templates come from files too: a fault in them is exit 3, not a usage error
// (2). An empty file is refused, because it would silently constrain nothing.
TEST(DamagedFiles, GrammarsSchemasAndTemplatesAreFiles) {
  const TempFolder folder;
  const std::string model =
      " " + loom_test::source_path("models/stories.entity") + " -p x --max-tokens 2 --quiet ";
  const std::pair<std::string, std::string> grammars[] = {
      {"root ::= \"a", "the line ends inside of a literal"},
      {"root ::= missing", "names the rule missing"},
      {"root ::= root \"a\"", "begins with itself"},
      {"\xff\xfe", "is not UTF-8"},
      {"", "is empty"},
      {" \n", "is empty"}};
  for (const auto& [bytes, says] : grammars) {
    const std::string path = folder.write("g.gbnf", bytes);
    expect_one_line(run_loom("run" + model + "--grammar " + path), 3, says);
    expect_one_line(run_loom("run" + model + "--grammar " + path), 3, path);
  }
  const std::pair<std::string, std::string> schemas[] = {
      {"{\"type\": \"obj", "a string that never ends"},
      {"{\"type\": \"nonsense\"}", "no such type"},
      {"{\"type\": \"string\", \"pattern\": \"((\"}", "without a )"},
      {"", "is empty"}};
  for (const auto& [bytes, says] : schemas) {
    const std::string path = folder.write("s.json", bytes);
    expect_one_line(run_loom("run" + model + "--json-schema " + path), 3, says);
  }
  const std::string served =
      "serve " + loom_test::source_path("models/stories.entity") + " --port 0 ";
  for (const char* bytes : {"", "{% if x", "{{ x"}) {
    const std::string path = folder.write("t.jinja", bytes);
    EXPECT_EQ(run_loom(served + "--chat-template-file " + path).code, 3) << bytes;
  }
}

// Random damage to files of --resume, and to grammars and schemas: success, or exit 3 in one line
// (4: understood, but not supported).
TEST(DamagedFiles, RandomDamageOfTextsAndRunsIsNeverAWrongCommand) {
  const TempFolder folder;
  const std::string p = folder.path() + "/";
  const std::string table = folder.write("t.csv", "1,2,0\n3,4,1\n5,7,0\n2,2,1\n1,1,0\n4,4,1\n");
  ASSERT_EQ(run_loom("new mlp --in 2 --hidden 3 --out 2 -o " + p + "n.json").code, 0);
  ASSERT_EQ(run_loom("train " + p + "n.json " + table + " --epochs 1 --quiet --checkpoint " + p +
                     "c.safetensors -o " + p + "o.entity")
                .code,
            0);
  ASSERT_EQ(run_loom("evolve " + table +
                     " --inputs 2 --outputs 2 --population 4 --generations 1 --quiet "
                     "--population-file " +
                     p + "pop.json")
                .code,
            0);
  folder.write("g.gbnf", "root ::= item (\",\" item)*\nitem ::= [a-z]+ | \"x\"\n");
  folder.write("s.json",
               R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})");
  const std::string model =
      "run " + loom_test::source_path("models/stories.entity") + " -p x --max-tokens 1 --quiet ";
  const std::pair<std::string, std::string> kinds[] = {
      {"g.gbnf", model + "--grammar "},
      {"s.json", model + "--json-schema "},
      {"pop.json",
       "evolve " + table + " --quiet --generations 1 --population-file " + p + "q.json --resume "},
      {"c.safetensors", "train " + p + "n.json " + table + " --epochs 1 --quiet -o " + p +
                            "o.entity --force --resume --checkpoint "}};
  uint64_t state = 33;
  const auto draw = [&](size_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % below;
  };
  for (int i = 0; i < 160; ++i) {
    const auto& [name, line] = kinds[draw(std::size(kinds))];
    std::string bytes = folder.read(name);
    switch (draw(3)) {
      case 0: bytes.resize(draw(bytes.size())); break;
      case 1: bytes[draw(bytes.size())] ^= static_cast<char>(1 + draw(255)); break;
      default: bytes.replace(draw(bytes.size()), 4, std::string(4, '\0')); break;
    }
    const std::string path = folder.write("bad-" + name, bytes);
    const Ran ran = run_loom(line + path);
    EXPECT_TRUE(ran.code == 0 || ran.code == 3 || ran.code == 4)
        << name << ", fault " << i << ": " << ran.code << " " << ran.err;
  }
}

}  // namespace
}  // namespace loom::core::test
