// Merging and splicing through the public interface: files of any kind, networks in memory, the
// blend law, and refusals.
#include "loom/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "evolve/merging/splice.hpp"
#include "evolve/networks.hpp"

namespace loom::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kWeight = "(0, 0, 0, 0)/weight";

class Merging : public testing::Test {
 protected:
  Merging() {
    for (int i = 0; i < 3; ++i) {
      loom::Network net = test::dense_row({6, 9, 4});
      test::fill_gaussian(net, static_cast<uint64_t>(40 * i + 1));
      net.save(path(i)).or_exit();
      nets_.push_back(net);
    }
  }
  std::string path(int i) const { return folder_ / ("net" + std::to_string(i) + ".entity"); }

  test::EvolveFolder folder_;
  std::vector<loom::Network> nets_;
};

TEST_F(Merging, AveragesEveryParameterInTheOrderGiven) {
  const MergeReport report =
      merge({{path(0), 0.7}, {path(1), 0.2}, {path(2), 0.4}}, folder_ / "out.entity").value();
  EXPECT_EQ(report.models, 3);
  EXPECT_EQ(report.parameters, 4);
  EXPECT_EQ(report.weights, 6 * 9 + 9 + 9 * 4 + 4);
  EXPECT_GT(report.bytes, 0);
  const loom::Network out = loom::Network::load(folder_ / "out.entity").value();
  for (const ParameterInfo& p : out.parameters()) {
    const std::vector<float> a = test::values_of(nets_[0], p.name),
                             b = test::values_of(nets_[1], p.name),
                             c = test::values_of(nets_[2], p.name),
                             got = test::values_of(out, p.name);
    for (size_t i = 0; i < got.size(); ++i) {
      const double sum = 0.7 * static_cast<double>(a[i]) + 0.2 * static_cast<double>(b[i]) +
                         0.4 * static_cast<double>(c[i]);
      ASSERT_EQ(got[i], static_cast<float>(sum / (0.7 + 0.2 + 0.4))) << p.name << " " << i;
    }
  }
}

TEST_F(Merging, GivesTheSameBytesWithAnyNumberOfThreads) {
  for (const MergeMethod method :
       {MergeMethod::linear, MergeMethod::slerp, MergeMethod::dare_ties}) {
    std::string first;
    for (const int threads : {1, 2, 3, 7}) {
      MergeOptions options{.method = method, .seed = 9};
      options.engine = Engine::create({.threads = threads, .exact_threads = true}).value();
      if (method == MergeMethod::dare_ties) options.base = path(2);
      const double density = method == MergeMethod::dare_ties ? 0.5 : 1;
      merge({{path(0), 0.6, density}, {path(1), 0.4, density}}, folder_ / "out.npz", options)
          .or_exit();
      const std::string bytes = read_file(folder_ / "out.npz").value();
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first) << threads << " threads, " << merge_method_name(method);
    }
  }
}

TEST_F(Merging, WritesEveryFormatOfNetworks) {
  for (const char* name : {"out.entity", "out.safetensors", "out.npz", "out.onnx", "out.json"}) {
    merge({{path(0)}, {path(1)}}, folder_ / name).or_exit();
    const auto net = loom::Network::load(folder_ / name);
    ASSERT_TRUE(net.ok()) << name << ": " << net.error().str();
    EXPECT_FALSE(net->info().fresh) << name;
    const float mean =
        (test::values_of(nets_[0], kWeight)[0] + test::values_of(nets_[1], kWeight)[0]) / 2;
    const std::string cell = net->parameters()[0].name;
    EXPECT_NEAR(test::values_of(*net, cell)[0], mean, 1e-6) << name;
  }
}

TEST_F(Merging, KeepsTheNumberTypeOfTheFirstUnlessAskedFor) {
  convert(path(0), folder_ / "packed.entity", {.dtype = loom::DType::int8}).or_exit();
  merge({{folder_ / "packed.entity"}, {path(1)}}, folder_ / "out.entity").or_exit();
  EXPECT_EQ(loom::Network::load(folder_ / "out.entity")->parameters()[0].dtype, loom::DType::int8);
  merge({{folder_ / "packed.entity"}, {path(1)}}, folder_ / "out.entity",
        {.dtype = loom::DType::bfloat16})
      .or_exit();
  EXPECT_EQ(loom::Network::load(folder_ / "out.entity")->parameters()[0].dtype,
            loom::DType::bfloat16);
}

TEST_F(Merging, MergesLanguageModelsAcrossFormats) {
  convert(test::kStories, folder_ / "stories.gguf").or_exit();
  std::vector<std::string> notes;
  MergeOptions options;
  options.note = [&](const std::string& text) { notes.push_back(text); };
  merge({{test::kStories}, {folder_ / "stories.gguf"}}, folder_ / "merged", options).or_exit();
  const std::vector<TensorDifference> differences =
      diff(test::kStories, folder_ / "merged", {.by_parameters = true}).value();
  for (const TensorDifference& d : differences)
    EXPECT_EQ(d.max_abs, 0) << d.name << ": the mean of a model and itself";
  // The merged model generates the text of its source model.
  const auto written = [](const std::string& path) {
    const Engine engine = Engine::create().value();
    const Model model = Model::load(engine, path).value();
    return model.info().parameters;
  };
  EXPECT_EQ(written(folder_ / "merged"), written(test::kStories));
}

TEST_F(Merging, StopsWhenAskedAndLeavesNoFile) {
  MergeOptions options;
  options.progress = [](uint64_t, uint64_t) { return false; };
  const auto stopped = merge({{path(0)}, {path(1)}}, folder_ / "out.entity", options);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::cancelled);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.entity"));
}

TEST_F(Merging, RefusesModelsThatAreNotOneNetwork) {
  test::dense_row({6, 8, 4}).save(folder_ / "other.entity").or_exit();
  test::dense_row({6, 9, 4, 4}).save(folder_ / "deeper.entity").or_exit();
  write_file(folder_ / "net.json", nets_[0].json()).or_exit();
  const std::string out = folder_ / "out.entity";
  const auto says = [](const auto& result) {
    return result.ok() ? std::string("no error") : result.error().str();
  };
  const std::pair<std::string, const char*> cases[] = {
      {says(merge({{path(0)}, {folder_ / "other.entity"}}, out)), "weight is [8, 6], not [9, 6]"},
      {says(merge({{path(0)}, {folder_ / "deeper.entity"}}, out)), "which has no (0, 0, 2, 0)"},
      {says(merge({{folder_ / "deeper.entity"}, {path(0)}}, out)), "it has no (0, 0, 2, 0)"},
      {says(merge({{path(0)}, {test::kStories}}, out)), "a language model and a network"},
      {says(merge({{path(0)}, {folder_ / "net.json"}}, out)), "holds no weights"},
      {says(merge({{path(0)}, {folder_ / "none.entity"}}, out)), "none.entity"},
      {says(merge({{path(0)}, {path(1)}}, folder_ / "out.gguf")),
       "cannot write a network as '.gguf'"},
      {says(splice(path(0), test::kStories, out)), "a language model and a network"},
      {says(splice(path(0), folder_ / "net.json", out)), "holds no weights"},
      {says(splice(path(0), path(1), out, {.fitness_a = 1})), "one fitness alone"},
      {says(splice(path(0), path(1), out, {.alpha = 2})), "alpha must be"},
      {says(splice(path(0), path(1), out, {.split = NAN})), "split must be"},
      {says(splice(path(0), path(1), out, {.fitness_a = NAN, .fitness_b = 1})), "finite number"},
      {says(parse_splice_mode("mix")), "choose from blend, point, uniform"},
  };
  for (const auto& [message, expected] : cases) {
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

// ---- splicing -----------------------------------------------------------------------------------

TEST(BlendRule, FollowsItsLaw) {
  struct Case {
    BlendLaw law;
    std::optional<double> a, b;
    double similarity, share;
  };
  constexpr BlendLaw kOld = BlendLaw::original, kNew = BlendLaw::fitter;
  const Case cases[] = {
      {kOld, 3, 1, 1, 0.25},      {kOld, 3, 1, 0, 0.125},     {kOld, 3, 1, -1, 0},
      {kOld, {}, {}, 0, 0.3},     {kOld, -3, -1, 0, 0.3},     {kOld, -1, 3, 1, 1},
      {kNew, {}, {}, 0, 0.3},     {kNew, 3, 1, 1, 0.25},      {kNew, 3, 1, 0, 0},
      {kNew, 3, 1, 0.5, 0.125},   {kNew, 1, 3, 1, 0.75},      {kNew, 1, 3, 0, 1},
      {kNew, 1, 3, -1, 1},        {kNew, 1, 3, 0.5, 0.875},   {kNew, 2, 2, 0, 0.5},
      {kNew, -3, -1, 1, 2.0 / 3}, {kNew, -1, -3, 1, 1.0 / 3}, {kNew, 0, 0, 1, 0.5},
  };
  for (const Case& c : cases) {
    SpliceOptions options{.law = c.law, .alpha = 0.3};
    options.fitness_a = c.a;
    options.fitness_b = c.b;
    EXPECT_NEAR(blend_rule(options).value().share(c.similarity), c.share, 1e-12)
        << c.a.value_or(NAN) << " " << c.b.value_or(NAN) << " at " << c.similarity;
  }
}

// Eight weights in one layer.
loom::Network eight(const std::vector<float>& values) {
  loom::Network net =
      loom::Network::sequential({Dense{.in = 4, .out = 2, .bias = false}}, {.input = {4}}).value();
  test::set_values(net, kWeight, values);
  return net;
}

TEST(Splice, BlendsByFitnessAsTheOriginalDid) {
  const std::vector<float> a = {1, 0, 1, 0, 1, 0, 1, 0}, other = {0, 1, 0, 1, 0, 1, 0, 1};
  std::vector<float> minus = a;
  for (float& v : minus) v = -v;
  const SpliceOptions options{.law = BlendLaw::original, .fitness_a = 3, .fitness_b = 1};
  const std::pair<std::vector<float>, double> cases[] = {{a, 0.25}, {other, 0.125}, {minus, 0}};
  for (const auto& [b, share] : cases) {
    const SplicedNetwork child = splice(eight(a), eight(b), options).value();
    EXPECT_DOUBLE_EQ(child.report.layers[0].share, share);
    const std::vector<float> got = test::values_of(child.network, kWeight);
    for (size_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(got[i], a[i] * (1 - share) + b[i] * share);
  }
}

TEST(Splice, TakesTheFirstPartFromOneAndTheRestFromTheOther) {
  const std::vector<float> a(8, 1), b(8, 2);
  const auto child = [&](double split) {
    return test::values_of(
        splice(eight(a), eight(b), {.mode = SpliceMode::point, .split = split})->network, kWeight);
  };
  EXPECT_THAT(child(0.5), ElementsAre(1, 1, 1, 1, 2, 2, 2, 2));
  EXPECT_THAT(child(0.3), ElementsAre(1, 1, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(child(-1), ElementsAre(2, 2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(child(7), ElementsAre(1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(Splice, TakesEachWeightByChanceAndTheSameWithTheSameSeed) {
  loom::Network a = test::dense_row({40, 50}), b = test::dense_row({40, 50});
  test::fill_gaussian(a, 1);
  test::fill_gaussian(b, 9);
  SpliceOptions options{.mode = SpliceMode::uniform, .fitness_a = 3, .fitness_b = 1, .seed = 4};
  const SplicedNetwork child = splice(a, b, options).value();
  const std::vector<float> got = test::values_of(child.network, kWeight),
                           mine = test::values_of(a, kWeight), theirs = test::values_of(b, kWeight);
  int64_t from_b = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i] == mine[i] || got[i] == theirs[i]);
    from_b += got[i] == theirs[i] ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(from_b) / 2000, 0.25, 0.04);
  EXPECT_EQ(test::values_of(splice(a, b, options)->network, kWeight), got);
  options.seed = 5;
  EXPECT_NE(test::values_of(splice(a, b, options)->network, kWeight), got);
}

TEST(Splice, LeavesLayersOfAnotherKindOrShapeAlone) {
  const auto net = [](Layer middle, int64_t out) {
    return loom::Network::sequential(
               {Dense{.in = 4, .out = 6}, std::move(middle), Dense{.in = 6, .out = out}},
               {.input = {4}})
        .value();
  };
  loom::Network a = net(LayerNorm{.width = 6}, 3), b = net(RmsNorm{.width = 6}, 2);
  test::fill_gaussian(a, 1);
  test::fill_gaussian(b, 50);
  const SplicedNetwork child = splice(a, b).value();
  ASSERT_EQ(child.report.layers.size(), 3u);
  EXPECT_EQ(child.report.crossed, 1);
  EXPECT_EQ(child.report.layers[0].skipped, "");
  EXPECT_EQ(child.report.layers[1].skipped, "the other has a layer RMSNorm there");
  EXPECT_EQ(child.report.layers[2].skipped, "another shape");
  for (const ParameterInfo& p : a.parameters()) {
    const bool crossed = p.name.find("(0, 0, 0, 0)") == 0;
    EXPECT_EQ(test::values_of(child.network, p.name) == test::values_of(a, p.name), !crossed)
        << p.name;
  }
}

TEST(Splice, GoesIntoContainersOfALanguageModel) {
  const test::EvolveFolder folder;
  convert(test::kStories, folder / "other.entity", {.dtype = loom::DType::int4}).or_exit();
  const SpliceReport report = splice(test::kStories, folder / "other.entity",
                                     folder / "child.entity", {.fitness_a = 1, .fitness_b = 1})
                                  .value();
  ASSERT_EQ(report.layers.size(), 19u)
      << "the embedding, four blocks of two norms and two others, a norm, the head";
  EXPECT_EQ(report.layers[18].skipped, "it has the weights of a layer before it");
  for (const SplicedLayer& layer : report.layers) {
    if (layer.at == report.layers[18].at) continue;
    EXPECT_EQ(layer.skipped, "") << layer.at;
    EXPECT_EQ(layer.share, 0.5) << layer.at;
    EXPECT_GT(layer.similarity, 0.9) << layer.at;
  }
  const Engine engine = Engine::create().value();
  EXPECT_TRUE(Model::load(engine, folder / "child.entity").ok());
}

TEST(Splice, LeavesBothParentsAsTheyWere) {
  loom::Network a = test::dense_row({5, 7, 3}), b = test::dense_row({5, 7, 3});
  test::fill_gaussian(a, 1);
  test::fill_gaussian(b, 2);
  std::vector<std::vector<float>> before;
  for (const loom::Network* net : {&a, &b}) {
    for (const ParameterInfo& p : net->parameters())
      before.push_back(test::values_of(*net, p.name));
  }
  for (const SpliceMode mode : {SpliceMode::blend, SpliceMode::point, SpliceMode::uniform})
    ASSERT_TRUE(splice(a, b, {.mode = mode}).ok());
  size_t at = 0;
  for (const loom::Network* net : {&a, &b}) {
    for (const ParameterInfo& p : net->parameters())
      EXPECT_EQ(test::values_of(*net, p.name), before[at++]) << p.name;
  }
}

TEST(Splice, WritesTheSameFileAsTheNetworkInMemory) {
  const test::EvolveFolder folder;
  loom::Network a = test::dense_row({5, 7, 3}), b = test::dense_row({5, 7, 3});
  test::fill_gaussian(a, 1);
  test::fill_gaussian(b, 2);
  a.save(folder / "a.entity").or_exit();
  b.save(folder / "b.entity").or_exit();
  const SpliceReport report =
      splice(folder / "a.entity", folder / "b.entity", folder / "child.entity").value();
  EXPECT_EQ(report.crossed, 2);
  const loom::Network file = loom::Network::load(folder / "child.entity").value();
  const loom::Network memory = splice(a, b)->network;
  for (const ParameterInfo& p : file.parameters())
    EXPECT_EQ(test::values_of(file, p.name), test::values_of(memory, p.name)) << p.name;
}

}  // namespace
}  // namespace loom::core
