// loom dna, merge, cluster and ensemble as a person or a script uses them: output, files, and the
// one-line error and exit code of every mistake.
#include <gmock/gmock.h>

#include <algorithm>

#include "e2e/program.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kStoryModel = loom_test::source_path("models/stories.entity");
const std::string kSamples = loom_test::source_path("examples/data");

// In arguments and lines: $T is the test's folder, $E the story model, $D the samples.
class EvolveVerbs : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run("new mlp --in 4 --hidden 6 --out 4 -o $T/net.json").code, 0);
    for (const char* seed : {"1", "2", "3"}) {
      const std::string name = std::string("$T/n") + seed + ".entity";
      const Ran trained = run(std::string("train $T/net.json $D/fruit.csv --epochs 3 --normalize "
                                          "standard --quiet --seed ") +
                              seed + " -o " + name);
      ASSERT_EQ(trained.code, 0) << trained.err;
    }
  }
  std::string named(std::string text) const {
    const std::pair<std::string, std::string> names[] = {
        {"$T", folder_.path()}, {"$E", kStoryModel}, {"$D", kSamples}};
    for (const auto& [name, path] : names) {
      for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += path.size())
        text.replace(at, name.size(), path);
    }
    return text;
  }
  Ran run(const std::string& arguments) const { return run_loom(named(arguments)); }

  TempFolder folder_;
};

JsonValue parsed(const Ran& ran) {
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Result<JsonValue> json = parse_json(ran.out, "stdout");
  EXPECT_TRUE(json.ok()) << ran.out;
  return json.value_or(JsonValue());
}

// The rows in another order number the classes in another order; `merge` and `ensemble` match them.
TEST_F(EvolveVerbs, PutsNetworksOfOtherOrdersOfClassesTogetherByName) {
  const std::string table = core::read_file(kSamples + "/fruit.csv").value();
  const size_t header = table.find('\n') + 1;
  std::vector<std::string> rows;
  for (size_t at = header; at < table.size();) {
    const size_t end = std::min(table.find('\n', at), table.size() - 1) + 1;
    rows.push_back(table.substr(at, end - at));
    at = end;
  }
  // The first row is then a lemon, not a plum.
  std::string rotated = table.substr(0, header);
  for (size_t i = 0; i < rows.size(); ++i) rotated += rows[(i + 2) % rows.size()];
  folder_.write("rotated.csv", rotated);
  for (const char* data : {"$D/fruit.csv", "$T/rotated.csv"}) {
    const std::string name = std::string(data) == "$D/fruit.csv" ? "$T/one" : "$T/other";
    ASSERT_EQ(
        run(std::string("train $T/net.json ") + data +
            " --epochs 15 --rate 0.01 --normalize standard --quiet --seed 1 -o " + name + ".entity")
            .code,
        0);
  }
  const auto accuracy = [&](const std::string& net) {
    return *parsed(run("eval " + net + " $D/fruit.csv --json"))
                .find("accuracy")
                ->as_double("accuracy");
  };
  const Ran merged = run("merge $T/one.entity $T/other.entity -o $T/both.entity");
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.err, HasSubstr("they are matched by name"));
  const double each = std::min(accuracy("$T/one.entity"), accuracy("$T/other.entity"));
  EXPECT_GT(accuracy("$T/both.entity"), each - 0.05);
  const JsonValue message =
      parsed(run("ensemble $T/one.entity $T/other.entity --data $D/fruit.csv --json --quiet"));
  EXPECT_GT(*message.find("together")->find("soft")->as_double("soft"), each - 0.05);
}

TEST_F(EvolveVerbs, DnaPrintsDrawsAndSaysTheSameAsJson) {
  const Ran text = run("dna $T/n1.entity $T/n2.entity --svg $T/map.svg");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.err, IsEmpty());
  EXPECT_THAT(text.out, StartsWith("cell"));
  EXPECT_THAT(text.out, HasSubstr("coverage 100 %"));
  const std::string svg = folder_.read("map.svg");
  EXPECT_THAT(svg, StartsWith("<svg"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  const JsonValue json = parsed(run("dna $T/n1.entity $T/n2.entity --json"));
  EXPECT_EQ(json.find("layer_overlaps")->members().size(), 2u);
  EXPECT_EQ(json.find("mode")->text(), "functional");
  const JsonValue same = parsed(run("dna $E $E --json --threads 3"));
  EXPECT_EQ(same.find("overall_overlap")->as_double("").value(), 1.0);
}

TEST_F(EvolveVerbs, MergeWritesAModelThatOthersOpen) {
  const Ran merged = run("merge $T/n1.entity $T/n2.entity --weights 0.7,0.3 -o $T/m.entity");
  EXPECT_EQ(merged.code, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("linear of 2 models, 58 weights in 4 parameters"));
  EXPECT_EQ(run("eval $T/m.entity $D/fruit.csv").code, 0);
  const JsonValue report =
      parsed(run("merge $T/n1.entity $T/n2.entity --method ties --base $T/n3.entity --density 0.5 "
                 "-o $T/t.safetensors --json --quiet"));
  EXPECT_EQ(report.find("method")->text(), "ties");
  EXPECT_EQ(report.find("weights")->as_int("").value(), 58);
  const JsonValue child = parsed(run(
      "merge $T/n1.entity $T/n2.entity --method blend --fitness 2,1 -o $T/c.npz --json --quiet"));
  EXPECT_EQ(child.find("layers")->elements().size(), 2u);
  EXPECT_EQ(run("predict $T/c.npz $D/fruit.csv").code, 0);
  const Ran again = run("merge $T/n1.entity $T/n2.entity -o $T/m.entity --force");
  EXPECT_EQ(again.code, 0) << "--force replaces";
  EXPECT_EQ(run("merge $E $E --quiet -o $T/stories").code, 0);
  EXPECT_THAT(
      run("run $T/stories -p 'Once upon a time' --max-tokens 4 --temperature 0 --quiet").out,
      HasSubstr("there was"));
}

TEST_F(EvolveVerbs, ClusterGroupsPointsModelsAndTensors) {
  const Ran points = run("cluster $D/fruit.csv --k 4");
  EXPECT_EQ(points.code, 0) << points.err;
  EXPECT_THAT(points.out, StartsWith("point,group\n0,"));
  EXPECT_EQ(std::ranges::count(points.out, '\n'), 301);
  EXPECT_THAT(points.err, HasSubstr("300 points in 4 groups, silhouette 0."));
  EXPECT_EQ(run("cluster $D/fruit.csv --k 4 --threads 7 --quiet").out, points.out);
  const JsonValue tree =
      parsed(run("cluster $D/fruit.csv --method average --threshold 20 --json --quiet"));
  EXPECT_EQ(tree.find("merges")->elements().size(), 299u);
  const Ran models =
      run("cluster $T/n1.entity $T/n1.entity $T/n2.entity --by models --k 2 --quiet "
          "--svg $T/family.svg");
  EXPECT_EQ(models.code, 0) << models.err;
  EXPECT_THAT(models.out, HasSubstr("n1.entity,0\n"));
  EXPECT_THAT(models.out, HasSubstr("n2.entity,1\n"));
  EXPECT_THAT(folder_.read("family.svg"), StartsWith("<svg"));
  const Ran tensors =
      run("cluster " + loom_test::source_path("tests/data/stories") + " --by tensors");
  EXPECT_THAT(tensors.out, HasSubstr("model.layers.0.self_attn"));
  EXPECT_EQ(run("cluster $D/fruit.csv --k 4 --quiet -o $T/groups.json").out, "");
  EXPECT_THAT(folder_.read("groups.json"), StartsWith("{\"labels\":["));
}

TEST_F(EvolveVerbs, EnsembleAsksAllAndSavesTheirJudge) {
  const Ran ran =
      run("ensemble $T/n1.entity $T/n2.entity $T/n3.entity --data $D/fruit.csv --quiet "
          "--fit $D/fruit.csv --judge $T/judge.entity --method stack -o $T/labels.csv");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("together, majority"));
  EXPECT_THAT(ran.out, HasSubstr("together, stack"));
  const std::string labels = folder_.read("labels.csv");
  EXPECT_EQ(std::ranges::count(labels, '\n'), 301);
  EXPECT_THAT(run("info $T/judge.entity").out, HasSubstr("52"));
  const JsonValue json =
      parsed(run("ensemble $T/n1.entity $T/n2.entity --data $D/fruit.csv --json --quiet"));
  EXPECT_EQ(json.find("samples")->as_int("").value(), 300);
  EXPECT_EQ(json.find("members")->elements().size(), 2u);
  EXPECT_EQ(json.find("pairs")->elements().size(), 1u);
}

TEST_F(EvolveVerbs, AnswersMistakesInOneLine) {
  struct Mistake {
    const char* arguments;
    int code;
    const char* says;
  };
  const Mistake cases[] = {
      {"dna $T/n1.entity", 2, "B is required; see loom dna --help"},
      {"dna $T/n1.entity $T/none.entity", 3, "no such file"},
      {"dna $T/n1.entity $D/fruit.csv", 3, "fruit.csv"},
      {"dna $T/n1.entity $T/n2.entity --mode loose", 2, "choose strict, functional"},
      {"dna $T/n1.entity $T/n2.entity --threshold 3", 2, "--threshold: must be from -1 to 1"},
      {"dna $T/n1.entity $T/n2.entity --svg $T/map.png", 2, "--svg"},
      {"dna $T/n1.entity $T/net.json", 2, "holds no weights"},
      {"merge $T/n1.entity $T/n2.entity", 2, "is required; see loom merge --help"},
      {"merge $T/n1.entity -o $T/o.entity", 2, "linear needs two models or more"},
      {"merge $T/n1.entity $T/n2.entity -o $T/n3.entity", 2, "exists already; --force replaces it"},
      {"merge $T/n1.entity $T/n2.entity -o $T/n1.entity --force", 2, "n1.entity"},
      {"merge $T/n1.entity $T/n2.entity --method mean -o $T/o.entity", 2,
       "choose from linear, slerp"},
      {"merge $T/n1.entity $T/n2.entity --weights 1,x -o $T/o.entity", 2, "'x' is not a number"},
      {"merge $T/n1.entity $T/n2.entity --weights 1,2,3 -o $T/o.entity", 2,
       "3 numbers for 2 models"},
      {"merge $T/n1.entity $T/n2.entity --method ties -o $T/o.entity", 2, "give the base"},
      {"merge $T/n1.entity $E -o $T/o.entity", 2, "a language model and a network"},
      {"merge $T/n1.entity $T/n2.entity -o $T/none/o.entity", 2, "none"},
      {"merge $T/n1.entity $T/n2.entity $T/n3.entity --method point -o $T/o.entity", 2,
       "crosses two parents, not 3"},
      {"merge $T/n1.entity $T/n2.entity --method blend --law old -o $T/o.entity", 2,
       "unknown law 'old'"},
      {"cluster $D/fruit.csv", 2, "k-means needs --k"},
      {"cluster $D/fruit.csv --k 0", 2, "--k: must be"},
      {"cluster $D/fruit.csv --by words", 2, "choose points, models or tensors"},
      {"cluster $D/fruit.csv --method single", 2, "give --k, how many groups, or --threshold"},
      {"cluster $T/n1.entity --by models --k 1", 2, "two models or more"},
      {"cluster $T/none.csv --k 2", 3, "none.csv"},
      {"ensemble $T/n1.entity $T/n2.entity", 2, "--data is required"},
      {"ensemble $T/n1.entity $E --data $D/fruit.csv", 4, "language model"},
      {"ensemble $T/n1.entity --data $D/fruit.csv --method stack", 2, "give them with --fit"},
      {"ensemble $T/n1.entity --data $D/fruit.csv --weights 1,1", 2, "2 weights for 1 models"},
      {"ensemble $T/net.json --data $D/fruit.csv", 2, "without weights"},
  };
  for (const Mistake& c : cases) {
    const Ran ran = run(c.arguments);
    EXPECT_EQ(ran.code, c.code) << c.arguments << ": " << ran.err;
    EXPECT_THAT(ran.err, StartsWith("loom: ")) << c.arguments;
    EXPECT_THAT(ran.err, HasSubstr(c.says)) << c.arguments;
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << c.arguments << ": " << ran.err;
    EXPECT_THAT(ran.out, IsEmpty()) << c.arguments;
  }
}

}  // namespace
}  // namespace loom::core::test
