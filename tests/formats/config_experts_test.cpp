// The experts of config.json: values, defaults of the classes, layers without experts, and
// refusals.
#include "base/text.hpp"
#include "formats/config/config.hpp"
#include "formats/config_testing.hpp"

namespace loom::core {
namespace {

Result<DecoderConfig> read(const char* hf_class, const char* type, test::ConfigChanges changes) {
  changes.insert(changes.begin(), {{"architectures", cat("[\"", hf_class, "\"]")},
                                   {"model_type", cat('"', type, '"')},
                                   {"num_hidden_layers", "4"},
                                   {"num_key_value_heads", "2"}});
  return parse_hf_config(test::config_text(changes), "", "config.json");
}

TEST(ConfigExperts, HaveTheDefaultsOfTheirClass) {
  const auto mixtral = read("MixtralForCausalLM", "mixtral", {});
  ASSERT_TRUE(mixtral.ok()) << mixtral.error().str();
  EXPECT_EQ(mixtral->experts, (DecoderExperts{.count = 8, .chosen = 2, .inner = 128}));
  EXPECT_TRUE(mixtral->layers.empty());
  const auto qwen = read("Qwen2MoeForCausalLM", "qwen2_moe", {});
  ASSERT_TRUE(qwen.ok()) << qwen.error().str();
  EXPECT_EQ(qwen->experts, (DecoderExperts{.count = 60,
                                           .chosen = 4,
                                           .inner = 1408,
                                           .normalize = false,
                                           .shared_inner = 5632,
                                           .shared_gate = true}));
}

TEST(ConfigExperts, MayHaveEitherNameOfTheirNumber) {
  for (const char* key : {"num_experts", "num_local_experts"}) {
    for (const auto& [hf_class, type] : {std::pair("MixtralForCausalLM", "mixtral"),
                                         std::pair("Qwen3MoeForCausalLM", "qwen3_moe")}) {
      const auto config = read(hf_class, type, {{key, "5"}, {"num_experts_per_tok", "3"}});
      ASSERT_TRUE(config.ok()) << config.error().str();
      EXPECT_EQ(config->experts.count, 5);
      EXPECT_EQ(config->experts.chosen, 3);
    }
  }
}

TEST(ConfigExperts, LeaveLayersToAnMlp) {
  const auto config = read("Qwen3MoeForCausalLM", "qwen3_moe",
                           {{"decoder_sparse_step", "2"}, {"mlp_only_layers", "[3, 9]"}});
  ASSERT_TRUE(config.ok()) << config.error().str();
  const bool experts[] = {false, true, false, false};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(config->has_experts(i), experts[i]) << i;
}

TEST(ConfigExperts, OfEachClassLeaveTheLayersThatItNamesToAnMlp) {
  const struct {
    const char *hf_class, *type;
    test::ConfigChanges changes;
    std::vector<bool> experts;
  } rows[] = {{"Glm4MoeForCausalLM", "glm4_moe", {}, {false, true, true, true}},
              {"Glm4MoeForCausalLM", "glm4_moe", {{"first_k_dense_replace", "3"}}, {0, 0, 0, 1}},
              {"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", {}, {false, true, true, true}},
              {"Ernie4_5_MoeForCausalLM",
               "ernie4_5_moe",
               {{"moe_layer_start_index", "0"}, {"moe_layer_end_index", "1"}},
               {true, true, false, false}},
              {"HYV3ForCausalLM",
               "hy_v3",
               {{"mlp_layer_types", R"(["sparse", "dense", "sparse", "dense"])"}},
               {true, false, true, false}},
              {"GraniteMoeForCausalLM", "granitemoe", {}, {true, true, true, true}}};
  for (const auto& row : rows) {
    const auto config = read(row.hf_class, row.type, row.changes);
    ASSERT_TRUE(config.ok()) << config.error().str();
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(config->has_experts(i), row.experts[static_cast<size_t>(i)]) << row.type << i;
  }
}

// One shared expert without a setting, several of one size, and none.
TEST(ConfigExperts, ShareAsManyAsTheirClassSays) {
  const struct {
    const char *hf_class, *type;
    test::ConfigChanges changes;
    int64_t inner;
  } rows[] = {{"HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", {}, 128},
              {"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", {{"moe_intermediate_size", "10"}}, 20},
              {"Ernie4_5_MoeForCausalLM", "ernie4_5_moe", {{"moe_num_shared_experts", "0"}}, 0},
              {"GraniteMoeSharedForCausalLM", "granitemoeshared", {}, 0},
              {"GraniteMoeSharedForCausalLM",
               "granitemoeshared",
               {{"shared_intermediate_size", "12"}},
               12}};
  for (const auto& row : rows) {
    const auto config = read(row.hf_class, row.type, row.changes);
    ASSERT_TRUE(config.ok()) << config.error().str();
    EXPECT_EQ(config->experts.shared_inner, row.inner) << row.type;
  }
}

TEST(ConfigExperts, OfSomeClassesAreRefusedByField) {
  const struct {
    const char *hf_class, *type;
    test::ConfigChanges changes;
    const char* message;
  } rows[] = {{"HYV3ForCausalLM",
               "hy_v3",
               {{"mlp_layer_types", R"(["sparse"])"}},
               "mlp_layer_types: expected a list of 4 names"},
              {"HYV3ForCausalLM",
               "hy_v3",
               {{"mlp_layer_types", R"(["sparse", "mixed", "dense", "dense"])"}},
               "mlp_layer_types: \"mixed\" is not supported; dense and sparse are"},
              {"Ernie4_5_MoeForCausalLM",
               "ernie4_5_moe",
               {{"use_bias", "true"}},
               "use_bias: true is not supported"},
              {"GraniteMoeSWAForCausalLM",
               "granitemoe_swa",
               {{"layer_rope_theta", "[1e4, 0, 5, 0.5]"}},
               "layer_rope_theta: expected bases of positions, found 0.5"}};
  for (const auto& row : rows) {
    const auto config = read(row.hf_class, row.type, row.changes);
    ASSERT_FALSE(config.ok()) << row.message;
    EXPECT_EQ(config.error().message, row.message);
  }
}

TEST(ConfigExperts, AreRefusedByField) {
  const struct {
    test::ConfigChanges changes;
    const char* message;
  } rows[] = {
      {{{"num_experts", "4"}, {"num_experts_per_tok", "5"}},
       "num_experts_per_tok: 5 experts are chosen from 4"},
      {{{"num_experts", "0"}}, "num_experts: expected an integer from 1 to 4096, found 0"},
      {{{"moe_intermediate_size", "0"}},
       "moe_intermediate_size: expected an integer from 1 to 16777216, found 0"},
      {{{"mlp_only_layers", "3"}}, "mlp_only_layers: expected a list of numbers of layers"},
      {{{"mlp_only_layers", "[true]"}}, "mlp_only_layers: expected numbers of layers, found true"},
      {{{"decoder_sparse_step", "0"}},
       "decoder_sparse_step: expected an integer from 1 to 16777216, found 0"},
      {{{"num_hidden_layers", "64"},
        {"num_experts", "4096"},
        {"moe_intermediate_size", "16777216"}},
       "num_experts: these sizes make more than 2^48 weights"}};
  for (const auto& row : rows) {
    const auto config = read("Qwen3MoeForCausalLM", "qwen3_moe", row.changes);
    ASSERT_FALSE(config.ok()) << row.message;
    EXPECT_EQ(config.error().message, row.message);
  }
}

}  // namespace
}  // namespace loom::core
