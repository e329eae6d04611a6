// loom evolve as a person or a script uses it: its output, its files, and the one-line error of
// every mistake, also of the fitness program.
#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>

#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

const std::string kFruit = loom_test::source_path("examples/data/fruit.csv");

class EvolveVerb : public testing::Test {
 protected:
  // The size of the file: genomes grow, so that it rises.
  void SetUp() override {
    judge_ = folder_.write("judge.sh", "wc -c < \"$1\"\n");
    small_ = "evolve --fitness 'sh " + judge_ + "' --inputs 2 --outputs 1 --population 8 ";
  }
  std::string in_folder(const std::string& name) const { return folder_.path() + "/" + name; }

  TempFolder folder_;
  std::string judge_, small_;
};

TEST_F(EvolveVerb, FindsANetworkForSamplesThatOtherVerbsUse) {
  const std::string net = in_folder("best.json"), svg = in_folder("fruit.svg");
  const Ran ran = run_loom("evolve '" + kFruit +
                           "' --inputs 4 --outputs 4 --generations 40 "
                           "--population 100 --validation 0.25 -o " +
                           net + " --svg " + svg);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("generation    0  best "));
  EXPECT_THAT(ran.out, HasSubstr("best fitness "));
  EXPECT_THAT(ran.out, HasSubstr("validation accuracy "));
  const std::string svg_text = folder_.read("fruit.svg");
  EXPECT_THAT(svg_text, StartsWith("<svg"));
  EXPECT_THAT(svg_text, HasSubstr("species 0"));
  EXPECT_THAT(svg_text, testing::EndsWith("</svg>\n"));
  // Chance is 25 %.
  const Ran eval = run_loom("eval " + net + " '" + kFruit + "' --json");
  ASSERT_EQ(eval.code, 0) << eval.err;
  const Result<JsonValue> scores = parse_json(eval.out, "stdout");
  ASSERT_TRUE(scores.ok());
  EXPECT_GT(*scores->find("accuracy")->as_double("accuracy"), 0.8);
  EXPECT_EQ(run_loom("predict " + net + " '" + kFruit + "'").code, 0);
}

TEST_F(EvolveVerb, GoesOnFromAPopulationWithTheSameBitsForAnyNumberOfThreads) {
  const std::string whole = in_folder("whole.json"), part = in_folder("part.json");
  ASSERT_EQ(run_loom(small_ + "--generations 5 --threads 1 --population-file " + whole).code, 0);
  ASSERT_EQ(run_loom(small_ + "--generations 2 --threads 3 --population-file " + part).code, 0);
  const Ran rest = run_loom("evolve --fitness 'sh " + judge_ + "' --resume " + part +
                            " --population-file " + part + " --generations 3 --threads 2 --json");
  ASSERT_EQ(rest.code, 0) << rest.err;
  EXPECT_EQ(folder_.read("part.json"), folder_.read("whole.json"));
  const Result<JsonValue> json = parse_json(rest.out, "stdout");
  ASSERT_TRUE(json.ok()) << rest.out;
  EXPECT_EQ(json->find("generations")->elements().size(), 5u);
  EXPECT_EQ(*json->find("evaluations")->as_int("evaluations"), 24);
}

TEST_F(EvolveVerb, HoldsTheSameSamplesOutWhenItGoesOn) {
  const std::string data = "evolve '" + kFruit + "' --validation 0.25 --json ";
  const std::string first = data + "--inputs 4 --outputs 4 --population 20 --seed 7 ";
  const std::string whole = in_folder("w.json"), part = in_folder("p.json");
  const Ran once = run_loom(first + "--generations 6 --population-file " + whole);
  ASSERT_EQ(once.code, 0) << once.err;
  ASSERT_EQ(run_loom(first + "--generations 3 --population-file " + part).code, 0);
  const Ran twice =
      run_loom(data + "--resume " + part + " --generations 3 --population-file " + part);
  ASSERT_EQ(twice.code, 0) << twice.err;
  EXPECT_EQ(folder_.read("p.json"), folder_.read("w.json"));
  const auto loss = [](const Ran& ran) {
    return *parse_json(ran.out, "stdout")->find("validation_loss")->as_double("loss");
  };
  EXPECT_EQ(loss(twice), loss(once));
}

// Every option that the fitness depends on is in the file of the population.
TEST_F(EvolveVerb, JudgesAsBeforeWhenItGoesOn) {
  const std::string data = "evolve '" + kFruit + "' --json ";
  for (const std::string how : {"--normalize none ", "--normalize range ", "--validation 0.3 ",
                                "--normalize none "
                                "--validation 0.2 "}) {
    SCOPED_TRACE(how);
    const std::string first = data + "--inputs 4 --outputs 4 --population 20 --seed 3 " + how;
    const std::string whole = in_folder("w.json"), part = in_folder("p.json");
    ASSERT_EQ(run_loom(first + "--generations 6 --population-file " + whole).code, 0);
    ASSERT_EQ(run_loom(first + "--generations 3 --population-file " + part).code, 0);
    for (const std::string& again : {std::string(), how}) {
      const std::string rest = in_folder("rest.json");
      const Ran ran = run_loom(data + again + "--resume " + part +
                               " --generations 3 --population-file " + rest);
      ASSERT_EQ(ran.code, 0) << ran.err;
      EXPECT_EQ(folder_.read("rest.json"), folder_.read("w.json"));
    }
  }
}

TEST_F(EvolveVerb, RefusesToGoOnWithAnotherJudge) {
  const std::string pop = in_folder("samples.json"), asked = in_folder("asked.json");
  const std::string table = folder_.write("table.csv", "1,2,0\n3,4,1\n5,7,0\n2,2,1\n");
  const std::string other = folder_.write("other.csv", "1,2,0\n3,4,1\n5,7,0\n2,9,1\n");
  ASSERT_EQ(run_loom("evolve " + table +
                     " --inputs 2 --outputs 2 --population 6 --generations 2 "
                     "--normalize none --quiet --population-file " +
                     pop)
                .code,
            0);
  ASSERT_EQ(run_loom(small_ + "--generations 1 --quiet --population-file " + asked).code, 0);
  std::string text = folder_.read("samples.json");
  const size_t hash = text.find("\"data\":\"") + 8;
  ASSERT_GT(hash, 8U);
  text[hash] = text[hash] == '0' ? '1' : '0';
  const std::string flipped = folder_.write("flipped.json", text);
  const std::tuple<std::string, const char*, int> cases[] = {
      {table + " --normalize range --resume " + pop, "--normalize is none in the population", 2},
      {table + " --validation 0.5 --resume " + pop, "--validation is 0 in the population", 2},
      {other + " --resume " + pop, "other samples than the population of --resume", 3},
      {table + " --resume " + flipped, "or its hash of them is damaged", 3},
      {"--fitness x --resume " + pop, "was judged by samples; give them as DATA", 2},
      {table + " --resume " + asked, "was judged by a program; give --fitness", 2},
  };
  for (const auto& [arguments, expected, code] : cases) {
    const Ran ran = run_loom("evolve " + arguments);
    EXPECT_EQ(ran.code, code) << arguments;
    EXPECT_THAT(ran.err, HasSubstr(expected));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

// A program that runs the nodes of --genome needs the shift and scale of its inputs.
TEST_F(EvolveVerb, AGenomeSaysHowItsInputsAreNormalized) {
  for (const std::string how : {"standard", "range", "none"}) {
    ASSERT_EQ(run_loom("evolve '" + kFruit + "' --inputs 4 --outputs 4 --population 10 " +
                       "--generations 1 --force --quiet --normalize " + how + " --genome " +
                       in_folder("g.json") + " -o " + in_folder("n.json"))
                  .code,
              0);
    const JsonValue genome = parse_json(folder_.read("g.json"), "g.json").value();
    EXPECT_EQ(genome.find("classes")->elements().size(), 4u);
    if (how == "none") {
      EXPECT_EQ(genome.find("input_shift"), nullptr);
      continue;
    }
    ASSERT_NE(genome.find("input_shift"), nullptr) << how;
    EXPECT_EQ(genome.find("input_shift")->elements().size(), 4u);
    EXPECT_EQ(genome.find("input_scale")->elements().size(), 4u);
  }
}

TEST_F(EvolveVerb, SavesItsBestInEveryFormatThatItNames) {
  for (const char* ending : {"json", "entity", "safetensors", "npz"}) {
    const std::string net = in_folder("grown.") + ending;
    const Ran ran = run_loom("evolve '" + kFruit +
                             "' --inputs 4 --outputs 4 --generations 4 "
                             "--population 20 --add-node 0.5 --quiet -o " +
                             net);
    ASSERT_EQ(ran.code, 0) << ran.err;
    EXPECT_EQ(run_loom("eval " + net + " '" + kFruit + "'").code, 0) << ending;
  }
}

TEST_F(EvolveVerb, KeepsARecurrentGenomeAsNodesAndConnections) {
  const Ran ran = run_loom(small_ + "--recurrent --generations 2 --genome " + in_folder("g.json"));
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Result<JsonValue> genome = parse_json(folder_.read("g.json"), "g.json");
  ASSERT_TRUE(genome.ok());
  EXPECT_GE(genome->find("nodes")->elements().size(), 4u);
}

TEST_F(EvolveVerb, NamesAProgramThatFailsHangsOrPrintsNoNumberAndLosesNothing) {
  const struct {
    std::string command, says;
  } cases[] = {
      {"exit 3 #", "'exit 3 #' ended with status 3"},
      {"echo oops >&2; exit 1 #", "ended with status 1: oops"},
      {"sleep 600 #", "ran longer than 0.5 s (--timeout)"},
      {"yes", "ran longer than 0.5 s (--timeout)"},
      {"sleep 600 & sleep 600 #", "ran longer than 0.5 s (--timeout)"},
      {"echo 1; echo hi #", "printed 'hi' as its last line, which has to be a number"},
      {"echo 5 apples #", "printed '5 apples' as its last line"},
      {": #", "printed nothing; its last line has to be a number"},
      {"kill -9 $$ #", "was ended by signal 9"},
      {"/no/such/program", "ended with status 127: "},
  };
  const std::string kept = in_folder("kept.json");
  ASSERT_EQ(run_loom(small_ + "--generations 2 --population-file " + kept).code, 0);
  const std::string before = folder_.read("kept.json");
  for (const auto& c : cases) {
    const bool hangs = c.says.find("ran longer") != std::string::npos;
    const Ran ran =
        run_loom("evolve --fitness '" + c.command + "' --resume " + kept + " --population-file " +
                     kept + " --quiet --timeout " + (hangs ? "0.5" : "300"),
                 "timeout 300");
    EXPECT_EQ(ran.code, 1) << c.command;
    EXPECT_THAT(ran.err, MatchesRegex("loom: the fitness command [^\n]*\n")) << c.command;
    EXPECT_THAT(ran.err, HasSubstr(c.says)) << c.command;
    EXPECT_EQ(folder_.read("kept.json"), before) << c.command;
  }
}

TEST_F(EvolveVerb, ReadsTheLastLineEvenIfSomethingIsLeftRunning) {
  const Ran ran = run_loom(
      "evolve --inputs 1 --outputs 1 --population 2 --generations 1 --quiet "
      "--fitness 'sleep 120 & echo noise; echo 4.5; echo #'",
      "timeout 100");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("best fitness 4.5 after 2 evaluations"));
}

TEST_F(EvolveVerb, SaysThatNoNetworkHasAFitness) {
  const Ran ran = run_loom(
      "evolve --inputs 1 --outputs 1 --population 2 --generations 1 --quiet "
      "--fitness 'echo nan #'");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("no network has a finite fitness yet"));
}

TEST_F(EvolveVerb, RefusesWhatItCannotDoInOneLine) {
  const std::string pop = in_folder("pop.json");
  ASSERT_EQ(run_loom(small_ + "--generations 1 --population-file " + pop).code, 0);
  const std::string text = folder_.read("pop.json");
  const std::string cut = folder_.write("cut.json", text.substr(0, text.size() / 2));
  const struct {
    std::string arguments, says;
    int code;
  } cases[] = {
      {"--inputs 2 --outputs 1", "give DATA, samples to answer, or --fitness", 2},
      {kFruit + " --fitness x --inputs 2 --outputs 1", "give DATA, samples to answer, or", 2},
      {"--fitness x", "give --inputs and --outputs", 2},
      {kFruit + " --inputs 4 --outputs 4 --recurrent", "--recurrent needs --fitness", 2},
      {kFruit + " --inputs 4 --outputs 3", "'orange' would be class 3", 3},
      {kFruit + " --inputs 3 --outputs 4", "must be 3 for the network's input", 3},
      {"--fitness x --inputs 1 --outputs 1 --recurrent -o " + in_folder("a.json"),
       "a recurrent genome is not a network of layers", 2},
      {"--fitness x --inputs 1 --outputs 1 -o " + in_folder("a.txt"), "a.txt", 2},
      {"--fitness x --inputs 1 --outputs 1 --validation 0.2", "--validation holds out samples", 2},
      {"--fitness x --inputs 1 --outputs 1 --activation magic", "magic", 2},
      {"--fitness x --resume " + cut, "cut.json", 3},
      {"--fitness x --resume " + in_folder("none.json"), "none.json", 3},
      {"--fitness x --seed 3 --resume " + pop, "--seed is as the population of --resume has it", 2},
      {"--fitness x --recurrent --resume " + pop, "--recurrent is as the population", 2},
      {"--fitness x --inputs 1 --outputs 1 -o " + in_folder("a.onnx"), "a.onnx", 2},
      {kFruit + " --inputs 4 --outputs 4 --normalize as_trained", "choose none, standard", 2},
      {kFruit + " --resume " + pop, "was judged by a program; give --fitness", 2},
  };
  for (const auto& c : cases) {
    const Ran ran = run_loom("evolve " + c.arguments);
    EXPECT_EQ(ran.code, c.code) << c.arguments << ": " << ran.err;
    EXPECT_THAT(ran.err, MatchesRegex("(\\[[^\n]*\n)?loom: [^\n]*\n")) << c.arguments;
    EXPECT_THAT(ran.err, HasSubstr(c.says)) << c.arguments;
    EXPECT_THAT(ran.out, IsEmpty()) << c.arguments;
  }
}

}  // namespace
}  // namespace loom::core::test
