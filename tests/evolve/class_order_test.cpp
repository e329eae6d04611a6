// Models whose classes are numbered in other orders are put together by the names of the classes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "evolve/merging/class_order.hpp"
#include "evolve/networks.hpp"
#include "io/files/file.hpp"
#include "loom/ensemble.hpp"
#include "loom/merge.hpp"

namespace loom::core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A network of Gaussian weights with these classes, in this order; the layers before its last Dense
// have `width` outputs.
loom::Network classifier(std::vector<Layer> layers, int64_t width,
                         const std::vector<std::string>& classes, uint64_t seed,
                         const std::string& columns = "a,b,c") {
  const test::EvolveFolder folder;
  std::string table = columns + ",kind\n";
  for (const std::string& name : classes) table += "1,2,3," + name + "\n";
  write_file(folder / "t.csv", table).or_exit();
  loom::Network net =
      loom::Network::sequential(std::move(layers), {.input = {width}, .seed = seed}).value();
  const loom::Dataset data = loom::Dataset::from_file(folder / "t.csv", net, {}).value();
  loom::TrainerOptions options;
  options.rate = 0;
  loom::Trainer trainer = loom::Trainer::create(net, options).value();
  trainer.fit(data, {.epochs = 1}).or_exit();
  test::fill_gaussian(net, seed);
  return net;
}

std::vector<Layer> two_dense(int64_t classes) {
  return {Dense{.in = 3, .out = 5, .activation = loom::Activation::tanh},
          Dense{.in = 5, .out = classes}};
}

std::vector<std::string> shuffled_names(std::vector<std::string> names, uint64_t seed) {
  const Rng rng(seed, 6);
  for (size_t i = names.size(); i > 1; --i) std::swap(names[i - 1], names[rng.bits(i) % i]);
  return names;
}

// The scores of class `name`, sample by sample.
std::vector<float> scores_of(const loom::Network& net, const std::string& name,
                             const loom::Tensor& x) {
  const std::vector<std::string> classes = net.info().classes;
  const auto at = static_cast<size_t>(std::ranges::find(classes, name) - classes.begin());
  const loom::Tensor y = net.predict(x).value();
  const auto values = y.values<float>().value();
  std::vector<float> out;
  for (size_t i = at; i < values.size(); i += classes.size()) out.push_back(values[i]);
  return out;
}

TEST(ClassOrder, MergedNetworksOfOneFunctionAreThatFunctionInAnyOrderOfClasses) {
  const std::vector<std::string> names = {"ant", "bee", "cow", "dog", "eel"};
  const std::vector<float> inputs = test::gaussian(12, 9);
  const loom::Tensor x = loom::Tensor::copy(inputs, {4, 3}).value();
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const size_t count = 2 + seed % 4;
    const std::vector<std::string> mine(names.begin(), names.begin() + static_cast<int64_t>(count));
    const std::vector<std::string> others = shuffled_names(mine, seed);
    std::vector<Layer> layers = two_dense(static_cast<int64_t>(count));
    if (seed % 3 == 0) layers.emplace_back(Softmax{});
    if (seed % 3 == 1) layers.emplace_back(Dropout{.rate = 0.2});
    const loom::Network a = classifier(layers, 3, mine, seed);
    loom::Network b = classifier(layers, 3, others, seed);
    // b gets the function of a: the row of each class goes where b has that class.
    for (const char* name : {"(0, 0, 1, 0)/weight", "(0, 0, 1, 0)/bias"}) {
      const std::vector<float> from = test::values_of(a, name);
      std::vector<float> to = from;
      const size_t each = from.size() / count;
      for (size_t c = 0; c < count; ++c) {
        const auto at = static_cast<size_t>(std::ranges::find(mine, others[c]) - mine.begin());
        std::copy_n(from.begin() + static_cast<int64_t>(at * each), each,
                    to.begin() + static_cast<int64_t>(c * each));
      }
      test::set_values(b, name, to);
    }
    const test::EvolveFolder folder;
    a.save(folder / "a.entity").or_exit();
    b.save(folder / "b.entity").or_exit();
    for (const MergeMethod method : {MergeMethod::linear, MergeMethod::slerp}) {
      std::vector<std::string> notes;
      MergeOptions options{.method = method};
      options.note = [&](const std::string& line) { notes.push_back(line); };
      merge({{folder / "a.entity"}, {folder / "b.entity"}}, folder / "out.entity", options)
          .or_exit();
      EXPECT_EQ(notes.size(), mine == others ? 0u : 1u);
      const loom::Network out = loom::Network::load(folder / "out.entity").value();
      EXPECT_EQ(out.info().classes, mine);
      for (const std::string& name : mine) {
        const std::vector<float> want = scores_of(a, name, x), got = scores_of(out, name, x);
        EXPECT_THAT(scores_of(b, name, x), testing::Pointwise(testing::FloatNear(1e-5f), want));
        for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << name;
      }
    }
    splice(folder / "a.entity", folder / "b.entity", folder / "child.entity", {}).or_exit();
    const loom::Network child = loom::Network::load(folder / "child.entity").value();
    for (const std::string& name : mine) {
      const std::vector<float> want = scores_of(a, name, x), got = scores_of(child, name, x);
      for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << name;
    }
  }
}

TEST(ClassOrder, RefusesModelsOfOtherClassesColumnsAndHeads) {
  const test::EvolveFolder folder;
  const auto saved = [&](const char* name, const loom::Network& net) {
    net.save(folder / name).or_exit();
    return MergeInput{folder / name};
  };
  const auto row = [](int64_t heads) {
    return loom::Network::sequential(
               {MultiHeadAttention{.width = 8, .heads = heads, .kv_heads = heads}},
               {.input = {4, 8}})
        .value();
  };
  loom::Network two = row(2), four = row(4);
  const MergeInput a = saved("a.entity", classifier(two_dense(2), 3, {"x", "y"}, 1));
  const std::vector<Layer> scaled = {Dense{.in = 3, .out = 2}, LayerNorm{.width = 2}};
  const MergeInput norm = saved("norm.entity", classifier(scaled, 3, {"x", "y"}, 1));
  const std::pair<std::vector<MergeInput>, const char*> cases[] = {
      {{a, saved("z.entity", classifier(two_dense(2), 3, {"x", "z"}, 1))},
       "knows other classes: it has no 'y' among x, z; give models of the same classes"},
      {{a, saved("c.entity", classifier(two_dense(2), 3, {"x", "y"}, 1, "b,a,c"))},
       "takes the columns b, a, c, not a, b, c"},
      {{norm, saved("mron.entity", classifier(scaled, 3, {"y", "x"}, 1))},
       "train both with one order of classes"},
      {{saved("two.entity", two), saved("four.entity", four)}, "has heads 4, not 2"},
  };
  for (const auto& [inputs, expected] : cases) {
    const auto merged = merge(inputs, folder / "out.entity");
    ASSERT_FALSE(merged.ok()) << expected;
    EXPECT_THAT(merged.error().str(), HasSubstr(expected));
    EXPECT_EQ(merged.error().str().find('\n'), std::string::npos);
  }
  // A child keeps the classes of its first parent.
  const auto child = splice(folder / "a.entity", folder / "z.entity", folder / "child.entity", {});
  ASSERT_TRUE(child.ok()) << child.error().str();
  EXPECT_EQ(child->layers.back().skipped, "the other has other classes");
  EXPECT_THAT(child->notes, ElementsAre(HasSubstr("knows other classes")));
}

TEST(ClassOrder, MatchesAnswersOfAnEnsemble) {
  EXPECT_THAT(match_classes({"a", "b", "c"}, {"c", "a", "b"}).value(), ElementsAre(1, 2, 0));
  EXPECT_THAT(match_classes({"a", "b"}, {"a", "b"}).value(), IsEmpty());
  EXPECT_THAT(match_classes({"a", "b"}, {}).value(), IsEmpty());
  EXPECT_THAT(match_classes({"a", "b"}, {"a", "d"}).error().message, HasSubstr("it has no 'b'"));
  EXPECT_THAT(match_classes({"a"}, {"a", "d"}).error().message,
              HasSubstr("knows 2 classes, not 1"));
}

}  // namespace
}  // namespace loom::core
