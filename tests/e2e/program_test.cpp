// The program for people: help, names that fingers know, completions, man pages; trainings that are
// not lost; outputs that are not replaced.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "e2e/program.hpp"
#include "e2e/signalled.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::string kStories = loom_test::source_path("models/stories.entity");

class Program : public testing::Test {
 protected:
  void SetUp() override {
    std::string csv;
    for (int i = 0; i < 60; ++i)
      csv += std::to_string(i % 7) + "," + std::to_string(i % 5) + (i % 2 == 0 ? ",a\n" : ",b\n");
    folder_.write("d.csv", csv);
    ASSERT_EQ(run_loom("new mlp --in 2 --hidden 4 --out 2 -o " + at("net.json")).code, 0);
  }
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  bool has(const std::string& name) const { return std::filesystem::exists(at(name)); }
  std::string train(const std::string& more) const {
    return "train " + at("net.json") + " " + at("d.csv") + " --threads 1 " + more;
  }
  static std::string hash_of(const std::string& json) {
    const std::string key = "\"weights_hash\":\"";
    const size_t begin = json.find(key);
    return begin == std::string::npos ? "" : json.substr(begin + key.size(), 32);
  }

  TempFolder folder_;
};

size_t longest_line(const std::string& text) {
  size_t most = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    most = std::max(most, end - at);
    at = end + 1;
  }
  return most;
}

TEST_F(Program, HelpFitsTheWidth) {
  for (const char* verb : {"train", "run", "serve", "evolve", "bench gpu"}) {
    const std::string line = std::string(verb) + " --help";
    const std::string narrow = run_loom(line, "COLUMNS=60").out, wide = run_loom(line).out;
    // Examples are lines to copy, so they do not break.
    EXPECT_LE(longest_line(narrow.substr(narrow.find("\nUsage"))), 60u) << verb;
    EXPECT_LE(longest_line(wide.substr(wide.find("\nUsage"))), 100u) << verb;
    EXPECT_GT(std::count(narrow.begin(), narrow.end(), '\n'),
              std::count(wide.begin(), wide.end(), '\n'));
    EXPECT_EQ(wide.find('\033'), std::string::npos) << "colours in a pipe";
  }
  EXPECT_THAT(run_loom("train --help").out, HasSubstr("\nHeld-out samples:\n"));
}

TEST_F(Program, EveryOptionIsInTheManPageAndInTheCompletion) {
  const std::string help = run_loom("train --help").out, man = run_loom("help --man train").out;
  const std::string bash = run_loom("completion bash").out, fish = run_loom("completion fish").out;
  EXPECT_THAT(man, StartsWith(".TH \"loom\\-train\" 1"));
  int options = 0;
  for (size_t at = help.find("\n  -"); at != std::string::npos; at = help.find("\n  -", at + 1)) {
    const size_t begin = help.find("--", at);
    const std::string name = help.substr(begin, help.find_first_of(" ,\n", begin) - begin);
    std::string escaped;
    for (const char c : name) escaped += c == '-' ? std::string("\\-") : std::string(1, c);
    EXPECT_THAT(man, HasSubstr(escaped)) << name;
    EXPECT_THAT(bash, HasSubstr(name)) << name;
    EXPECT_THAT(fish, HasSubstr("-l " + name.substr(2) + " ")) << name;
    ++options;
  }
  EXPECT_GT(options, 90);
  EXPECT_THAT(run_loom("completion zsh").out, StartsWith("#compdef loom"));
}

TEST_F(Program, BashCompletesCommandsAndOptions) {
  folder_.write("complete.sh", run_loom("completion bash").out +
                                   "COMP_WORDS=(loom \"$@\"); COMP_CWORD=$#; _loom; "
                                   "printf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const auto complete = [&](const std::string& words) {
    FILE* pipe = popen(("bash " + at("complete.sh") + " " + words).c_str(), "r");
    std::string out;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
    pclose(pipe);
    return out;
  };
  EXPECT_EQ(complete("tr"), "train\n");
  EXPECT_EQ(complete("bench ll"), "llm\n");
  EXPECT_EQ(complete("train --epo"), "--epochs\n");
  EXPECT_THAT(complete("train " + at("net")), HasSubstr("net.json"));
}

TEST_F(Program, NamesOfOtherProgramsWork) {
  const std::string out = " -o none --json";
  const std::string ours =
      hash_of(run_loom(train("--rate 0.01 --batch 8 --epochs 2 --weight-decay 0.1" + out)).out);
  EXPECT_EQ(ours.size(), 32u);
  for (const char* line : {"--lr 0.01 --batch-size 8 --num_epochs 2 --wd=0.1",
                           "--learning_rate=0.01 -b 8 -e 2 --weight_decay 0.1"})
    EXPECT_EQ(hash_of(run_loom(train(line + out)).out), ours) << line;
  const std::string text = run_loom("run " + kStories + " -p Once --max-tokens 5").out;
  for (const std::string& line : std::vector<std::string>{
           "run " + kStories + " Once -n 5", "run Once -m " + kStories + " --num-predict 5",
           "run --model=" + kStories + " -p Once --max_tokens 5"})
    EXPECT_EQ(run_loom(line).out, text) << line;
  EXPECT_EQ(run_loom("ls").code, 0);
}

TEST_F(Program, ASchemaMayBeOnTheLine) {
  const std::string schema = "'{\"type\": \"boolean\"}'";
  const Ran ran = run_loom("run " + kStories + " Once --no-echo --json-schema " + schema);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, testing::AnyOf(HasSubstr("true"), HasSubstr("false")));
}

TEST_F(Program, ATrainingWithoutAnOutputHasANamedFile) {
  const Ran first = run_loom(train("--epochs 1"));
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("[the network is saved as " + at("net-trained.entity") + "]"));
  EXPECT_TRUE(has("net-trained.entity"));
  EXPECT_THAT(run_loom(train("--epochs 1 --json")).out,
              HasSubstr("\"output\":\"" + at("net-trained-2.entity")));
  const std::string more = "train " + at("net-trained.entity") + " " + at("d.csv") + " --epochs 1";
  EXPECT_THAT(run_loom(more).err, HasSubstr("net-trained-3.entity"));
  EXPECT_EQ(run_loom(train("--epochs 1 -o none")).code, 0);
  EXPECT_FALSE(has("net-trained-4.entity"));
  EXPECT_EQ(run_loom("eval " + at("net-trained.entity") + " " + at("d.csv")).code, 0);
}

// The shell has become the program.
bool is_loom(pid_t pid) {
  std::error_code ignored;
  const std::string exe = "/proc/" + std::to_string(pid) + "/exe";
  return std::filesystem::read_symlink(exe, ignored).filename() == "loom";
}

TEST_F(Program, CtrlCSavesTheRunAndTellsTheLineThatGoesOn) {
  const std::string common = "--epochs 1500 --batch 4 --quiet --json -o none --split 0.7 ";
  const std::string straight = hash_of(run_loom(train(common)).out);
  for (const std::string& more : std::vector<std::string>{"", "--checkpoint run.safetensors"}) {
    SCOPED_TRACE(more);
    const std::string line =
        train(common + (more.empty() ? more : "--checkpoint " + at("run.safetensors")));
    Ran ran;
    for (int tries = 0; tries < 20 && ran.err.find("go on with") == std::string::npos; ++tries)
      ran = signalled_loom(line, SIGINT, is_loom);
    ASSERT_EQ(ran.code, 130) << ran.err;
    ASSERT_THAT(ran.err, StartsWith("loom: interrupted in epoch "));
    const size_t at = ran.err.find("go on with: ");
    ASSERT_NE(at, std::string::npos) << ran.err;
    const std::string next = ran.err.substr(at + 12, ran.err.size() - at - 13);
    EXPECT_THAT(next, HasSubstr(" --resume"));
    FILE* pipe = popen((next + " 2>&1").c_str(), "r");
    std::string out;
    for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
    EXPECT_EQ(pclose(pipe), 0) << out;
    EXPECT_EQ(hash_of(out), straight) << next << out;
  }
}

TEST_F(Program, ARunMayHaveMoreEpochsThanItWasPlannedFor) {
  const std::string file = "-o none --checkpoint " + at("run.entity");
  ASSERT_EQ(run_loom(train("--epochs 2 " + file)).code, 0);
  const Ran more = run_loom(train("--epochs 5 --resume " + file));
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_THAT(more.err, HasSubstr("the run was planned for 2 epochs; from here on the rate follows "
                                  "a new schedule for 5"));
  EXPECT_THAT(more.out, StartsWith("epoch 3/5 "));
}

TEST_F(Program, OutputsThatExistNeedForce) {
  ASSERT_EQ(run_loom(train("--epochs 1 -o " + at("a.entity"))).code, 0);
  ASSERT_EQ(run_loom(train("--epochs 1 --seed 2 -o " + at("b.entity"))).code, 0);
  const std::string a = at("a.entity"), b = at("b.entity"), csv = at("d.csv");
  for (const char* name : {"x.entity", "x.svg", "x.csv", "x.json"}) folder_.write(name, "mine");
  const std::pair<std::string, std::string> lines[] = {
      {train("--epochs 1 -o "), "x.entity"},
      {train("--epochs 1 -o none --plot "), "x.svg"},
      {"predict " + a + " " + csv + " -o ", "x.csv"},
      {"eval " + a + " " + csv + " --plot ", "x.svg"},
      {"convert " + a + " ", "x.json"},
      {"quantize " + a + " --dtype int8 ", "x.entity"},
      {"merge " + a + " " + b + " -o ", "x.entity"},
      {"dna " + a + " " + b + " --svg ", "x.svg"},
      {"ensemble " + a + " " + b + " --data " + csv + " -o ", "x.csv"},
      {"cluster " + csv + " --k 2 -o ", "x.csv"},
      {"new mlp -o ", "x.json"},
      {"search " + at("net.json") + " " + csv + " --trials 1 --epochs 1 --try rate=0.1 -o ",
       "x.entity"},
      {"mesh run " + a + " " + csv + " -o ", "x.csv"},
      {"darts " + at("net.json") + " " + csv + " --epochs 1 -o ", "x.entity"},
      {"evolve " + csv + " --inputs 2 --outputs 2 --generations 1 --population 8 -o ", "x.json"},
  };
  for (const auto& [line, name] : lines) {
    const Ran ran = run_loom(line + at(name));
    EXPECT_EQ(ran.code, 2) << line;
    EXPECT_THAT(ran.err, HasSubstr(at(name) + ": exists already; --force replaces it")) << line;
    EXPECT_EQ(folder_.read(name), "mine") << line;
  }
  EXPECT_EQ(run_loom(lines[0].first + at("x.entity") + " --force").code, 0);
  EXPECT_NE(folder_.read("x.entity"), "mine");
  EXPECT_EQ(run_loom("predict " + a + " " + csv + " -o /dev/null").code, 2) << "no ending";
}

TEST_F(Program, InfoTellsOfTheTraining) {
  ASSERT_EQ(
      run_loom(train("--epochs 1 --split 0.8 --seed 3 --normalize standard -o " + at("n.entity")))
          .code,
      0);
  const std::string text = run_loom("info " + at("n.entity")).out;
  for (const char* line : {"\nclasses         a, b\n", "\nnormalization   of the inputs",
                           "\nsplit           --split 0.8 --seed 3\n", "\nloss            ",
                           "\nrecipe          1 epoch, batch 32, optimizer adam, rate 0.002, "
                           "schedule cosine, seed 3, normalize standard\n"})
    EXPECT_THAT(text, HasSubstr(line));
  const std::string json = run_loom("info --json " + at("n.entity")).out;
  EXPECT_THAT(json, HasSubstr("\"classes\":[\"a\",\"b\"]"));
  EXPECT_THAT(json, HasSubstr("\"split\":{\"share\":0.8,\"seed\":3,\"shuffle\":true}"));
  EXPECT_THAT(json, HasSubstr("\"recipe\":{\"epochs\":1,\"batch\":32,\"optimizer\":\"adam\""));
  EXPECT_THAT(run_loom("info " + at("net.json")).out, Not(HasSubstr("\nloss ")));
}

TEST_F(Program, TheRecipeAndThePlanOfATableAreInEveryFormat) {
  folder_.write("t.csv", "size,town,price\n1,a,10\n2,b,21\n3,a,33\n4,b,39\n5,a,52\n6,b,61\n");
  const std::string net = at("t.entity");
  ASSERT_EQ(run_loom("train " + at("t.csv") + " --target price --epochs 2 -o " + net).code, 0);
  const std::string recipe = "\"recipe\":{\"epochs\":2,";
  for (const char* name : {"t.safetensors", "u.entity", "t.onnx"}) {
    ASSERT_EQ(run_loom("convert " + net + " " + at(name)).code, 0);
    const std::string json = run_loom("info --json " + at(name)).out;
    EXPECT_THAT(json, HasSubstr(recipe)) << name;
    EXPECT_THAT(json, HasSubstr("\"table\":{")) << name;
    EXPECT_THAT(json, HasSubstr("\"name\":\"town\"")) << name;
  }
}

TEST_F(Program, ColumnsByOrderOfANewTableSaysThatItHasNoEffect) {
  folder_.write("t.csv", "a,b,y\n1,2,3\n2,1,3\n4,1,5\n1,1,2\n3,3,6\n2,2,4\n");
  const std::string line = "train " + at("t.csv") + " --target y --epochs 1 -o " + at("t.entity");
  EXPECT_THAT(run_loom(line + " --columns-by-order").err, HasSubstr("no effect on a new table"));
  EXPECT_THAT(run_loom(line + " --force").err, Not(HasSubstr("no effect")));
}

TEST_F(Program, ADashIsStandardInputAndOutput) {
  const std::string net = at("n.entity"), rows = "1,2\n3,4\n5,1\n";
  ASSERT_EQ(run_loom(train("--epochs 1 -o " + net)).code, 0);
  folder_.write("rows.csv", rows);
  const std::string answers = run_loom("predict " + net + " " + at("rows.csv")).out;
  EXPECT_THAT(answers, StartsWith("label\n"));
  EXPECT_EQ(run_loom("predict " + net + " - -o -", "", rows).out, answers);
  const std::string ticks = run_loom("mesh run " + net + " - --stream", "", rows).out;
  EXPECT_THAT(ticks, StartsWith("1,"));
  for (const std::string& from : {std::string("-"), at("rows.csv")}) {
    const std::string objects =
        run_loom("mesh run " + net + " " + from + " --ticks 3 --stream --json", "", rows).out;
    EXPECT_THAT(objects, StartsWith("{\"tick\":1,\"outputs\":[")) << from;
    EXPECT_THAT(objects, HasSubstr("\n{\"ticks\":3,")) << from;
  }
  const std::string three =
      run_loom("mesh run " + net + " " + at("rows.csv") + " --ticks 3 -o -").out;
  EXPECT_EQ(ticks, three);
  const Ran refused = run_loom("train " + at("net.json") + " " + at("d.csv") + " -o -");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("not to standard output"));
}

// 70 samples are a batch of 64 and a padded one.
TEST_F(Program, TheScatterPlotHasAPointForEachSample) {
  std::string csv = "x,y\n";
  for (int i = 0; i < 70; ++i) csv += std::to_string(i % 9) + "." + std::to_string(i) + ",0.5\n";
  folder_.write("p.csv", csv);
  const std::string net = at("p.entity");
  ASSERT_EQ(run_loom("new mlp --in 1 --hidden 2 --out 1 -o " + at("p.json")).code, 0);
  ASSERT_EQ(run_loom("train " + at("p.json") + " " + at("p.csv") + " --epochs 1 -o " + net).code,
            0);
  ASSERT_EQ(run_loom("eval " + net + " " + at("p.csv") + " --plot " + at("p.svg")).code, 0);
  const std::string svg = folder_.read("p.svg");
  size_t points = 0;
  for (size_t i = svg.find("<circle"); i != std::string::npos; i = svg.find("<circle", i + 1))
    ++points;
  EXPECT_EQ(points, 70u);
}

// Labels of the vertical axis, from the bottom.
TEST_F(Program, ChartsHaveRoundTicks) {
  ASSERT_EQ(run_loom(train("--epochs 23 -o none --plot " + at("loss.svg"))).code, 0);
  const std::string svg = folder_.read("loss.svg");
  std::vector<std::string> labels;
  const std::string mark = "text-anchor=\"end\" fill=\"black\">";
  for (size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1))
    labels.push_back(svg.substr(at + mark.size(), svg.find('<', at) - at - mark.size()));
  ASSERT_GE(labels.size(), 3u);
  EXPECT_LE(labels.size(), 9u);
  for (const std::string& label : labels) {
    EXPECT_LE(label.size(), 6u) << label;
    EXPECT_NE(label[0], '-') << label;
  }
  EXPECT_THAT(svg, HasSubstr(">20</text>"));
  EXPECT_THAT(svg, Not(HasSubstr(">23</text>")));
}

}  // namespace
}  // namespace loom::core::test
