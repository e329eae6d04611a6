// The methods of merging, one parameter at a time: against a NumPy oracle bit by bit, and what must
// hold of any values.
#include "evolve/merging/merge_math.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/numbers/rng.hpp"
#include "evolve/vectors.hpp"

namespace loom::core {
namespace {

using testing::HasSubstr;

struct MergeCase {
  MergeRecipe recipe;
  std::vector<std::vector<float>> models;
  std::vector<float> base;
  uint64_t stream = 0;

  std::vector<float> merged() const {
    std::vector<std::span<const float>> views(models.begin(), models.end());
    std::vector<float> out(models[0].size());
    merge_values(
        recipe, views,
        takes_base(recipe.method) ? std::span<const float>(base) : std::span<const float>(), stream,
        out);
    return out;
  }
};

MergeCase merge_case(const JsonValue& from) {
  MergeCase out;
  out.recipe.method = parse_merge_method(from.find("method")->text()).value();
  out.recipe.weights = test::numbers_of(*from.find("weights"));
  out.recipe.densities = test::numbers_of(*from.find("densities"));
  out.recipe.normalize = from.find("normalize")->as_bool("normalize").value();
  out.recipe.lambda = test::number_in(from, "lambda");
  out.recipe.t = test::number_in(from, "t");
  out.recipe.seed = static_cast<uint64_t>(from.find("seed")->as_int("seed").value());
  out.stream = static_cast<uint64_t>(from.find("stream")->as_int("stream").value());
  for (const JsonValue& model : from.find("models")->elements())
    out.models.push_back(test::floats_of(model));
  out.base = test::floats_of(*from.find("base"));
  return out;
}

TEST(MergeValues, HaveTheBitsOfTheNumpyOracle) {
  int64_t compared = 0;
  for (const JsonValue& from : test::vector_cases("merge")) {
    const MergeCase one = merge_case(from);
    const std::vector<float> out = one.merged(), expected = test::floats_of(*from.find("expected"));
    ASSERT_EQ(out.size(), expected.size());
    for (size_t i = 0; i < out.size(); ++i) {
      // -0 and 0 are one value: how a sum of nothing is written differs.
      ASSERT_TRUE(out[i] == expected[i])
          << merge_method_name(one.recipe.method) << " of " << out.size() << " values, at " << i
          << ": " << out[i] << ", NumPy says " << expected[i];
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
}

// A case of random sizes, weights and values.
MergeCase random_case(MergeMethod method, uint64_t seed) {
  const Rng rng(seed, 99);
  uint64_t next = 0;
  const auto draw = [&] { return static_cast<double>(rng.uniform(next++)); };
  MergeCase out;
  out.recipe.method = method;
  const size_t models = method == MergeMethod::slerp ? 2 : 2 + static_cast<size_t>(draw() * 3);
  const auto size = static_cast<size_t>(1 + draw() * 200);
  for (size_t m = 0; m < models; ++m) {
    out.recipe.weights.push_back(draw() + 0.1);
    out.recipe.densities.push_back(0.1 + 0.9 * draw());
    std::vector<float> values(size);
    for (float& v : values) v = static_cast<float>(draw() * 2 - 1);
    out.models.push_back(std::move(values));
  }
  out.base.assign(size, 0.25f);
  out.recipe.t = draw();
  return out;
}

constexpr MergeMethod kAllMethods[] = {MergeMethod::linear,          MergeMethod::slerp,
                                       MergeMethod::task_arithmetic, MergeMethod::ties,
                                       MergeMethod::dare_linear,     MergeMethod::dare_ties};

TEST(MergeValues, OfEqualModelsAreThatModel) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    for (const MergeMethod method : kAllMethods) {
      MergeCase one = random_case(method, seed);
      for (auto& model : one.models) model = one.models[0];
      one.recipe.normalize = true;
      std::ranges::fill(one.recipe.densities, 1.0);
      const std::vector<float> out = one.merged();
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], one.models[0][i], 2e-7) << merge_method_name(method) << " " << seed;
    }
  }
}

TEST(MergeValues, OfOneTaskAddItLambdaTimes) {
  for (const MergeMethod method : {MergeMethod::task_arithmetic, MergeMethod::ties,
                                   MergeMethod::dare_linear, MergeMethod::dare_ties}) {
    MergeCase one = random_case(method, 5);
    one.models.resize(1);
    one.recipe.weights = {1};
    one.recipe.densities = {1};
    one.recipe.lambda = 0.5;
    const std::vector<float> out = one.merged();
    for (size_t i = 0; i < out.size(); ++i)
      ASSERT_FLOAT_EQ(out[i], 0.25f + 0.5f * (one.models[0][i] - 0.25f));
  }
}

TEST(MergeValues, AlongAnArcBeginAndEndAtTheModels) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    MergeCase one = random_case(MergeMethod::slerp, seed);
    for (const double t : {0.0, 1.0}) {
      one.recipe.t = t;
      const std::vector<float> out = one.merged();
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_NEAR(out[i], one.models[t == 0.0 ? 0 : 1][i], 1e-6) << seed;
    }
  }
}

TEST(MergeValues, DropWithTheProbabilityAskedForAndKeepTheMean) {
  std::vector<double> values(20000, 1.0);
  drop_at_random(values, 0.3, 7, 11);
  double sum = 0, kept = 0;
  for (const double v : values) sum += v, kept += v != 0 ? 1 : 0;
  EXPECT_NEAR(kept / 20000, 0.3, 0.02);
  EXPECT_NEAR(sum / 20000, 1.0, 0.07);
  std::vector<double> again(20000, 1.0), other = again;
  drop_at_random(again, 0.3, 7, 11);
  drop_at_random(other, 0.3, 8, 11);
  EXPECT_EQ(again, values) << "the same seed drops the same";
  EXPECT_NE(other, values);
}

TEST(TrimSmallest, KeepsTheLargestAndOfEqualOnesTheFirst) {
  struct Trim {
    std::vector<double> values;
    double density;
    std::vector<double> left;
  };
  const Trim cases[] = {
      {{3, -1, 2, -4}, 0.5, {3, 0, 0, -4}}, {{1, -1, 1, -1}, 0.5, {1, -1, 0, 0}},
      {{1, 2, 3}, 0.1, {0, 0, 3}},  // one at least
      {{0, 0, 5, 0}, 0.75, {0, 0, 5, 0}},   {{2, 1}, 1.0, {2, 1}},
  };
  for (const Trim& c : cases) {
    std::vector<double> values = c.values;
    trim_smallest(values, c.density);
    EXPECT_EQ(values, c.left) << c.density;
  }
}

TEST(AngleOfCosine, InvertsTheCosineEverywhere) {
  for (int i = -1000; i <= 1000; ++i) {
    const double cosine = i / 1000.0;
    EXPECT_NEAR(angle_of_cosine(cosine), std::acos(cosine), 4e-15) << cosine;
  }
  EXPECT_EQ(angle_of_cosine(1), 0);
}

TEST(MergeRecipe, RefusesWhatMakesNoSenseInOneLine) {
  struct Bad {
    std::vector<MergeInput> models;
    MergeOptions options;
    const char* says;
  };
  const double nan = std::nan("");
  const Bad cases[] = {
      {{{"a"}}, {}, "linear needs two models or more"},
      {{}, {.method = MergeMethod::ties, .base = "b"}, "ties needs a model beside the base"},
      {{{"a"}, {"b"}, {"c"}}, {.method = MergeMethod::slerp}, "give two, not 3"},
      {{{"a"}, {"b"}}, {.method = MergeMethod::dare_ties}, "give the base"},
      {{{"a"}, {"b"}}, {.base = "c"}, "linear takes no base"},
      {{{"a", nan}, {"b"}}, {}, "a: weight nan: must be a finite number"},
      {{{"a", 1, 0}}, {.method = MergeMethod::ties, .base = "b"}, "above 0 and at most 1"},
      {{{"a", 1, 1.5}}, {.method = MergeMethod::ties, .base = "b"}, "density 1.5"},
      {{{"a", 1, 0.5}, {"b"}}, {}, "the others keep everything"},
      {{{"a"}, {"b"}}, {.method = MergeMethod::slerp, .t = 1.5}, "t is 1.5, must be 0 to 1"},
      {{{"a"}}, {.method = MergeMethod::ties, .base = "b", .lambda = nan}, "lambda"},
  };
  for (const Bad& c : cases) {
    const auto recipe = merge_recipe(c.models, c.options);
    ASSERT_FALSE(recipe.ok()) << c.says;
    EXPECT_THAT(recipe.error().str(), HasSubstr(c.says));
    EXPECT_EQ(recipe.error().code, Code::invalid_argument);
    EXPECT_EQ(recipe.error().str().find('\n'), std::string::npos);
  }
}

TEST(MergeMethod, HasANameBothWays) {
  for (const MergeMethod method : kAllMethods)
    EXPECT_EQ(parse_merge_method(merge_method_name(method)).value(), method);
  EXPECT_THAT(parse_merge_method("mean").error().message, HasSubstr("choose from linear, slerp"));
}

}  // namespace
}  // namespace loom::core
