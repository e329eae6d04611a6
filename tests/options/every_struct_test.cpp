// Options by name: every option of every struct is set, read back and refused as it is described.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loom/cluster_options.hpp"
#include "loom/convert_options.hpp"
#include "loom/ensemble_options.hpp"
#include "loom/evaluation_options.hpp"
#include "loom/evolve_options.hpp"
#include "loom/fit_options.hpp"
#include "loom/generation_options.hpp"
#include "loom/mesh_options.hpp"
#include "loom/text_options.hpp"
#include "rows.hpp"

namespace loom::options_test {
namespace {

using testing::HasSubstr;

template <class Options>
class EveryStruct : public testing::Test {};
using Structs =
    testing::Types<TrainerOptions, FitOptions, MeshTrainerOptions, KMeansOptions, LinkageOptions,
                   StackOptions, NeatOptions, DartsOptions, ArchitectureOptions, SamplerOptions,
                   GenerateOptions, PerplexityOptions, MeshFitOptions, EncodeOptions, EmbedOptions,
                   RerankOptions, AdaptationOptions, ConvertOptions, MergeOptions, SpliceOptions>;
TYPED_TEST_SUITE(EveryStruct, Structs, );

TYPED_TEST(EveryStruct, EveryOptionIsReadBackAsItWasSet) {
  Draw draw(1);
  const std::vector<Row> all = rows<TypeParam>();
  for (const Row& row : all) {
    SCOPED_TRACE(row.name);
    for (int i = 0; i < 50; ++i) {
      TypeParam options;
      const std::string expected = draw_text(row, draw);
      ASSERT_TRUE(set_option(options, row.name, expected).ok()) << expected;
      EXPECT_EQ(option_text(options, row.name).or_exit(), expected);
      EXPECT_TRUE(check_options(options).ok());
      // No other option has changed.
      for (const Row& other : all) {
        if (other.name == row.name) continue;
        EXPECT_EQ(option_text(options, other.name).or_exit(), other.value) << other.name;
      }
    }
  }
}

TYPED_TEST(EveryStruct, NumbersOutsideOfTheirRangeAreRefusedByNameAndValue) {
  for (const Row& row : rows<TypeParam>()) {
    if (!row.number() && !row.list()) continue;
    SCOPED_TRACE(row.name);
    std::vector<std::string> outside = {"nan", "1x", "x", "1 2"};
    if (row.low) outside.push_back(cat(*row.low - 1));
    if (row.low && row.low_open) outside.push_back(cat(*row.low));
    if (row.high) outside.push_back(cat(*row.high * 2 + 1));
    if (row.high && row.high_open) outside.push_back(cat(*row.high));
    if (!row.is_integer()) outside.emplace_back("inf");
    if (row.is_integer()) outside.emplace_back("1.5");
    for (const std::string& value : outside) {
      TypeParam options;
      const Status refused = set_option(options, row.name, value);
      ASSERT_FALSE(refused.ok()) << value;
      EXPECT_EQ(refused.error().code, Code::invalid_argument);
      EXPECT_THAT(refused.error().message, HasSubstr(cat(row.name, " is ")));
      EXPECT_THAT(refused.error().message, HasSubstr(", must be "));
      EXPECT_EQ(option_text(options, row.name).or_exit(), row.value);  // and nothing was set
    }
  }
}

TEST(ListsOfAnEnum, AreTextsAtCommasAndNamedWhenTheyAreWrong) {
  NeatOptions options;
  ASSERT_TRUE(set_option(options, "hidden", "relu,tanh").ok());
  EXPECT_EQ(options.hidden, (std::vector<Activation>{Activation::relu, Activation::tanh}));
  ASSERT_TRUE(set_option(options, "hidden", R"(["sigmoid"])").ok());
  EXPECT_EQ(options.hidden, std::vector<Activation>{Activation::sigmoid});
  ASSERT_TRUE(set_flag(options, "activation", {"mish", "gelu"}).ok());
  EXPECT_EQ(option_text(options, "hidden").or_exit(), "mish,gelu_erf");
  const Status refused = set_option(options, "hidden", "relu,rel");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("unknown activation 'rel'"));
  EXPECT_EQ(options.hidden.size(), 2U);
  options.hidden = {static_cast<Activation>(77)};
  EXPECT_THAT(check_options(options).error().message, HasSubstr("hidden is 77, must be one of"));
}

TEST(UnsetOptions, HaveATextOnceTheyAreSet) {
  EmbedOptions options;
  for (const auto& [name, value] : {std::pair("pooling", "weighted-mean"),
                                    {"normalize", "false"},
                                    {"prompt", "query: "},
                                    {"prompt", ""}}) {
    EmbedOptions one;
    ASSERT_TRUE(set_option(one, name, value).ok()) << name;
    EXPECT_EQ(option_text(one, name).or_exit(), value) << name;
    EXPECT_EQ(option_text(options, name).or_exit(), "") << name;
  }
  ASSERT_TRUE(set_option(options, "pooling", "cls").ok());
  EXPECT_EQ(options.pooling, TextPooling::cls);
  ASSERT_TRUE(set_option(options, "prompt", "").ok());  // no prompt is other than that of the model
  EXPECT_EQ(options.prompt, "");
  EXPECT_THAT(set_option(options, "pooling", "mean,max").error().message, HasSubstr("one value"));
  EXPECT_THAT(set_option(options, "pooling", "sum").error().message, HasSubstr("mean-sqrt-len"));
  EXPECT_THAT(set_option(options, "normalize", "yes").error().message, HasSubstr("true or false"));
  EXPECT_EQ(options.pooling, TextPooling::cls);
  ASSERT_TRUE(set_option(options, "pooling", "").ok());
  EXPECT_FALSE(options.pooling.has_value());
  options.pooling = static_cast<TextPooling>(9);
  EXPECT_THAT(check_options(options).error().message, HasSubstr("pooling is 9, must be one of"));
}

TEST(Enums, AreReadByTheirNames) {
  EXPECT_EQ(parse_distance("Manhattan").or_exit(), Distance::manhattan);
  EXPECT_EQ(linkage_method_name(LinkageMethod::average), "average");
  EXPECT_THAT(parse_linkage_method("ward").error().message, HasSubstr("single, complete"));
}

}  // namespace
}  // namespace loom::options_test
