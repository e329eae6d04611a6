// parse_hf_config: the fields of good files of each architecture, and the defaults.
#include <cmath>

#include "families/family.hpp"
#include "formats/config/config.hpp"

#include "formats/config_testing.hpp"
#include "io/files/file.hpp"

namespace loom::core {
namespace {

using test::config_text;
using test::expect_error;

DecoderConfig parsed(const std::string& text, const std::string& generation = {}) {
  const auto config = parse_hf_config(text, generation, "config.json");
  EXPECT_TRUE(config.ok()) << config.error().str() << "\n" << text;
  return config.ok() ? *config : DecoderConfig();
}

TEST(DecoderConfig, ReadsTheSharedCheckpoint) {
  const std::string folder = test::shared_data("models/shakespeare-llama");
  if (folder.empty()) GTEST_SKIP() << "no shared data beside this checkout";
  const auto text = read_file(folder + "/config.json");
  const auto generation = read_file(folder + "/generation_config.json");
  ASSERT_TRUE(text.ok() && generation.ok());
  const DecoderConfig config = parsed(*text, *generation);
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.hidden_size, 192);
  EXPECT_EQ(config.intermediate_size, 512);
  EXPECT_EQ(config.num_layers, 8);
  EXPECT_EQ(config.num_heads, 3);
  EXPECT_EQ(config.num_kv_heads, 1);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.vocab_size, 4096);
  EXPECT_EQ(config.max_positions, 1024);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_EQ(config.rope, RopeKind::standard);
  EXPECT_EQ(config.rope_theta, 100000.0);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, std::vector<int64_t>{2});
}

TEST(DecoderConfig, LlamaHasTheDefaultsOfItsClass) {
  const DecoderConfig config = parsed(config_text());
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.max_positions, 2048);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.hidden_act, "silu");
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_FALSE(config.attention_out_bias);
  EXPECT_FALSE(config.mlp_bias);
  EXPECT_FALSE(config.qk_norm);
  EXPECT_EQ(config.rope_theta, 10000.0);
  EXPECT_EQ(config.rope, RopeKind::standard);
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, std::vector<int64_t>{2});
  EXPECT_TRUE(config.layers.empty());
  EXPECT_EQ(config.embedding_scale, 1.0);
  EXPECT_EQ(config.attention_scale, 0.0);
  EXPECT_EQ(config.attention_soft_cap, 0.0);
  EXPECT_EQ(config.final_soft_cap, 0.0);
  EXPECT_EQ(config.ternary_weights, TernaryWeights::none);
}

TEST(DecoderConfig, NullIsAsAbsent) {
  const DecoderConfig config = parsed(config_text({{"head_dim", "null"},
                                                   {"num_key_value_heads", "null"},
                                                   {"rope_scaling", "null"},
                                                   {"rope_parameters", "null"},
                                                   {"sliding_window", "null"},
                                                   {"quantization_config", "null"},
                                                   {"bos_token_id", "null"},
                                                   {"eos_token_id", "null"},
                                                   {"layer_types", "null"},
                                                   {"model_type", "null"}}));
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.model_type, "llama");
}

TEST(DecoderConfig, HeadDimNeedNotDivideTheHiddenSize) {
  const DecoderConfig config = parsed(config_text({{"head_dim", "24"}, {"hidden_size", "63"}}));
  EXPECT_EQ(config.head_dim, 24);
}

// Fields left over from training, or of other classes; no current class computes with them.
TEST(DecoderConfig, WhatChangesNothingIsNotRefused) {
  const DecoderConfig config =
      parsed(config_text({{"pretraining_tp", "2"}, {"sliding_window", "4"}, {"use_cache", "1"}}));
  EXPECT_TRUE(config.layers.empty());
}

TEST(DecoderConfig, LlamaReadsItsBiases) {
  const DecoderConfig config =
      parsed(config_text({{"attention_bias", "true"}, {"mlp_bias", "true"}}));
  EXPECT_TRUE(config.attention_bias);
  EXPECT_TRUE(config.attention_out_bias);
  EXPECT_TRUE(config.mlp_bias);
}

// The text of a config of another class than Llama's.
std::string text_of(const std::string& name, const std::string& type,
                    test::ConfigChanges changes = {}) {
  changes.insert(changes.begin(), {{"architectures", "[\"" + name + "ForCausalLM\"]"},
                                   {"model_type", '"' + type + '"'},
                                   {"num_key_value_heads", "2"}});
  return config_text(changes);
}

std::vector<int64_t> windows_of(const DecoderConfig& config) {
  std::vector<int64_t> windows;
  for (int64_t i = 0; i < config.num_layers; ++i) windows.push_back(config.layer(i).window);
  return windows;
}

TEST(DecoderConfig, MistralHasItsWindowInEveryLayer) {
  struct Row {
    std::string window, positions;
    int64_t expected;
  };
  for (const Row& row : {Row{"null", "32768", 0}, Row{"4096", "4096", 0}, Row{"8192", "4096", 0},
                         Row{"4096", "32768", 4096}, Row{"", "32768", 4096}}) {
    const DecoderConfig config = parsed(
        text_of("Mistral", "mistral",
                {{"sliding_window", row.window}, {"max_position_embeddings", row.positions}}));
    EXPECT_EQ(config.num_kv_heads, 2);
    EXPECT_FALSE(config.attention_bias);
    EXPECT_EQ(windows_of(config), std::vector<int64_t>(2, row.expected));
  }
}

TEST(DecoderConfig, QwenSlidesInItsLastLayers) {
  for (const std::string type : {"2", "3"}) {
    const auto windows = [&](test::ConfigChanges changes) {
      changes.emplace_back("num_hidden_layers", "3");
      return windows_of(parsed(text_of("Qwen" + type, "qwen" + type, changes)));
    };
    using List = std::vector<int64_t>;
    EXPECT_EQ(windows({{"sliding_window", "8"}, {"max_window_layers", "1"}}), (List{0, 0, 0}));
    EXPECT_EQ(windows({{"use_sliding_window", "true"}, {"max_window_layers", "1"}}),
              (List{0, 4096, 4096}));
    EXPECT_EQ(windows({{"use_sliding_window", "true"}, {"sliding_window", "8"}}), (List{0, 0, 0}));
    EXPECT_EQ(
        windows({{"use_sliding_window", "true"},
                 {"sliding_window", "8"},
                 {"layer_types", R"(["sliding_attention","full_attention","full_attention"])"}}),
        (List{8, 0, 0}));
  }
}

TEST(DecoderConfig, GemmaHasTheDefaultsOfItsClass) {
  DecoderConfig config = parsed(text_of("Gemma", "gemma"));
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.embedding_scale, 8.0);
  EXPECT_EQ(config.hidden_act, "gelu_pytorch_tanh");
  EXPECT_EQ(config.max_positions, 8192);
  EXPECT_TRUE(config.tie_word_embeddings);
  EXPECT_TRUE(config.unit_offset_norms);
  EXPECT_FALSE(config.post_norms);
  EXPECT_TRUE(config.layers.empty());
  EXPECT_EQ(config.bos_token_id, 2);
  EXPECT_EQ(config.eos_token_ids, std::vector<int64_t>{1});
  config = parsed(text_of("Gemma", "gemma", {{"hidden_act", "\"gelu\""}}));
  EXPECT_EQ(config.hidden_act, "gelu_pytorch_tanh") << "what the first files meant";
}

TEST(DecoderConfig, Gemma2HasCapsFourNormsAndASlidingLayerInTwo) {
  DecoderConfig config = parsed(text_of("Gemma2", "gemma2", {{"num_hidden_layers", "3"}}));
  EXPECT_TRUE(config.post_norms);
  EXPECT_EQ(config.attention_scale, 1.0 / 16);
  EXPECT_EQ(config.attention_soft_cap, 50.0);
  EXPECT_EQ(config.final_soft_cap, 30.0);
  EXPECT_EQ(windows_of(config), (std::vector<int64_t>{4096, 0, 4096}));
  config = parsed(text_of("Gemma2", "gemma2",
                          {{"hidden_activation", "\"silu\""},
                           {"hidden_act", "\"ignored\""},
                           {"query_pre_attn_scalar", "4"},
                           {"attn_logit_softcapping", "null"},
                           {"final_logit_softcapping", "null"},
                           {"layer_types", R"(["full_attention","sliding_attention"])"},
                           {"sliding_window", "9"}}));
  EXPECT_EQ(config.hidden_act, "silu");
  EXPECT_EQ(config.attention_scale, 0.5);
  EXPECT_EQ(config.attention_soft_cap, 0.0);
  EXPECT_EQ(config.final_soft_cap, 0.0);
  EXPECT_EQ(windows_of(config), (std::vector<int64_t>{0, 9}));
}

TEST(DecoderConfig, Gemma3HasTwoKindsOfPositions) {
  // As version 4 and as version 5 of transformers write them.
  const test::ConfigChanges styles[] = {
      {{"rope_theta", "1000"},
       {"rope_local_base_freq", "50"},
       {"rope_scaling", R"({"rope_type":"linear","factor":8})"}},
      {{"rope_parameters",
        R"({"full_attention":{"rope_type":"linear","factor":8,"rope_theta":1000},)"
        R"("sliding_attention":{"rope_type":"default","rope_theta":50}})"}}};
  for (test::ConfigChanges changes : styles) {
    changes.insert(changes.end(), {{"num_hidden_layers", "7"}, {"sliding_window", "512"}});
    const DecoderConfig config = parsed(text_of("Gemma3", "gemma3_text", changes));
    EXPECT_TRUE(config.qk_norm);
    EXPECT_EQ(config.rope, RopeKind::linear);
    EXPECT_EQ(config.rope_factor, 8.0);
    EXPECT_EQ(config.rope_theta, 1000.0);
    EXPECT_EQ(config.attention_soft_cap, 0.0);
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(config.layer(i), (i == 5 ? DecoderLayer{} : DecoderLayer{512, true, 50.0})) << i;
    }
  }
  const DecoderConfig config = parsed(text_of(
      "Gemma3", "gemma3_text", {{"sliding_window_pattern", "2"}, {"sliding_window", "200000"}}));
  EXPECT_EQ(config.rope_theta, 1e6);
  EXPECT_EQ(config.layer(0), (DecoderLayer{0, true, 1e4}))
      << "a window of everything, but its positions";
  EXPECT_EQ(config.layer(1), DecoderLayer{});
}

TEST(DecoderConfig, Phi3FusesItsProjections) {
  DecoderConfig config = parsed(text_of("Phi3", "phi3"));
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.max_positions, 4096);
  EXPECT_EQ(config.rope_width, 0);
  EXPECT_TRUE(config.layers.empty());
  for (const std::string key : {"rope_parameters", "partial_rotary_factor"}) {
    const bool inside = key == "rope_parameters";
    config = parsed(text_of(
        "Phi3", "phi3",
        {{key, inside ? R"({"partial_rotary_factor":0.5})" : "0.5"}, {"sliding_window", "7"}}));
    EXPECT_EQ(config.rope_width, 8);
    EXPECT_EQ(windows_of(config), (std::vector<int64_t>{7, 7}));
  }
}

TEST(DecoderConfig, SmolLm3HasLayersWithoutPositions) {
  DecoderConfig config = parsed(text_of("SmolLM3", "smollm3", {{"num_hidden_layers", "5"}}));
  EXPECT_EQ(config.rope_theta, 2e6);
  EXPECT_TRUE(config.tie_word_embeddings);
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(config.layer(i).rope, i != 3);
  config = parsed(text_of(
      "SmolLM3", "smollm3",
      {{"no_rope_layer_interval", "2"}, {"use_sliding_window", "true"}, {"sliding_window", "5"}}));
  EXPECT_EQ(config.layer(0), DecoderLayer{});
  EXPECT_EQ(config.layer(1), (DecoderLayer{5, false, 0}));
  config = parsed(text_of("SmolLM3", "smollm3", {{"no_rope_layers", "[0,1]"}}));
  EXPECT_FALSE(config.layer(0).rope);
  EXPECT_TRUE(config.layer(1).rope);
}

TEST(DecoderConfig, BitNetSaysHowItsWeightsAreStored) {
  DecoderConfig config = parsed(text_of("BitNet", "bitnet"));
  EXPECT_TRUE(config.sub_norms);
  EXPECT_EQ(config.hidden_act, "relu2");
  EXPECT_EQ(config.rope_theta, 5e5);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.bos_token_id, -1) << "the default is not an id of this small vocabulary";
  EXPECT_EQ(config.ternary_weights, TernaryWeights::none);
  const std::pair<std::string, TernaryWeights> rows[] = {
      {"", TernaryWeights::divided},
      {R"(,"linear_class":"bitlinear")", TernaryWeights::divided},
      {R"(,"linear_class":"autobitlinear")", TernaryWeights::multiplied},
      {R"(,"linear_class":"autobitlinear","quantization_mode":"offline")",
       TernaryWeights::multiplied},
      {R"(,"linear_class":"autobitlinear","quantization_mode":"online")", TernaryWeights::online},
      {R"(,"modules_to_not_convert":["lm_head"])", TernaryWeights::divided}};
  for (const auto& [fields, expected] : rows) {
    config =
        parsed(text_of("BitNet", "bitnet",
                       {{"quantization_config", R"({"quant_method":"bitnet")" + fields + "}"}}));
    EXPECT_EQ(config.ternary_weights, expected) << fields;
  }
}

TEST(DecoderConfig, Qwen2HasBiasesOfQueryKeyAndValue) {
  const DecoderConfig config = parsed(config_text({{"architectures", R"(["Qwen2ForCausalLM"])"},
                                                   {"model_type", R"("qwen2")"},
                                                   {"num_key_value_heads", "4"},
                                                   {"use_sliding_window", "false"},
                                                   {"sliding_window", "128"},
                                                   {"max_window_layers", "28"}}));
  EXPECT_TRUE(config.attention_bias);
  EXPECT_FALSE(config.attention_out_bias);
  EXPECT_FALSE(config.qk_norm);
  EXPECT_EQ(config.max_positions, 32768);
}

TEST(DecoderConfig, Qwen3NormsQueryAndKey) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"architectures", R"(["Qwen3ForCausalLM"])"},
      {"model_type", R"("qwen3")"},
      {"num_key_value_heads", "2"},
      {"layer_types", R"(["full_attention","full_attention"])"}};
  DecoderConfig config = parsed(config_text(fields));
  EXPECT_TRUE(config.qk_norm);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_EQ(config.head_dim, 128);
  fields.emplace_back("head_dim", "null");
  config = parsed(config_text(fields));
  EXPECT_EQ(config.head_dim, 16);
}

TEST(DecoderConfig, ReadsEveryActivation) {
  for (const std::string name :
       {"silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "relu2"}) {
    EXPECT_EQ(parsed(config_text({{"hidden_act", '"' + name + '"'}})).hidden_act, name);
  }
}

TEST(DecoderConfig, ReadsPositionsInBothStyles) {
  const std::string llama3 =
      R"("rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
      R"("original_max_position_embeddings":8192)";
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    DecoderConfig config =
        parsed(config_text({{key, "{" + llama3 + "}"}, {"rope_theta", "500000.0"}}));
    EXPECT_EQ(config.rope, RopeKind::llama3);
    EXPECT_EQ(config.rope_theta, 500000.0);
    EXPECT_EQ(config.rope_factor, 32.0);
    EXPECT_EQ(config.rope_low_freq_factor, 1.0);
    EXPECT_EQ(config.rope_high_freq_factor, 4.0);
    EXPECT_EQ(config.rope_original_max_positions, 8192);
    config = parsed(config_text({{key, "{" + llama3 + ",\"rope_theta\":500000}"}}));
    EXPECT_EQ(config.rope_theta, 500000.0);
    config = parsed(config_text({{key, R"({"type":"linear","factor":2})"}}));
    EXPECT_EQ(config.rope, RopeKind::linear);
    EXPECT_EQ(config.rope_factor, 2.0);
    config = parsed(config_text({{key, R"({"rope_type":"default","type":"default"})"}}));
    EXPECT_EQ(config.rope, RopeKind::standard);
  }
  const DecoderConfig config =
      parsed(config_text({{"rope_parameters", R"({"rope_theta":1e6,"partial_rotary_factor":1.0})"},
                          {"rope_theta", "1000000"}}));
  EXPECT_EQ(config.rope, RopeKind::standard);
  EXPECT_EQ(config.rope_theta, 1e6);
}

TEST(DecoderConfig, ReadsYarnWithItsAttentionFactor) {
  struct Row {
    const char* settings;
    double attention, factor;
  };
  const Row rows[] = {{R"("factor":4)", 0.1 * std::log(4.0) + 1, 4},
                      {R"("factor":4,"attention_factor":0.5)", 0.5, 4},
                      {R"("factor":0.5)", 1, 0.5},
                      {R"("factor":4,"mscale":2,"mscale_all_dim":1)",
                       (0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1), 4},
                      {R"("mscale":2)", 0.1 * std::log(8.0) + 1, 8}};
  for (const Row& row : rows) {
    const DecoderConfig config =
        parsed(config_text({{"rope_scaling", std::string(R"({"type":"yarn",)") + row.settings +
                                                 R"(,"original_max_position_embeddings":256})"}}));
    EXPECT_EQ(config.rope, RopeKind::yarn);
    EXPECT_NEAR(config.rope_attention, row.attention, 1e-12) << row.settings;
    EXPECT_EQ(config.rope_factor, row.factor) << row.settings;
    EXPECT_EQ(config.rope_original_max_positions, 256);
  }
}

TEST(DecoderConfig, ReadsLongropeOfPhi3ByItsOldNames) {
  const std::string list = "[1,1,1,1,1,1,1,2]";
  for (const std::string type : {"longrope", "su", "yarn"}) {
    const std::string rope =
        R"({"type":")" + type + R"(","short_factor":)" + list + R"(,"long_factor":)" + list + "}";
    const DecoderConfig config = parsed(
        text_of("Phi3", "phi3", {{"rope_scaling", rope}, {"max_position_embeddings", "8192"}}));
    EXPECT_EQ(config.rope, RopeKind::longrope);
    EXPECT_EQ(config.rope_original_max_positions, 4096);
    EXPECT_NEAR(config.rope_attention, std::sqrt(1 + std::log(2.0) / std::log(4096.0)), 1e-12);
    EXPECT_EQ(config.rope_long, (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 2}));
  }
}

TEST(DecoderConfig, MergesTheEndsOfBothFiles) {
  const std::string text = config_text({{"eos_token_id", "[5, 7]"}, {"bos_token_id", "1"}});
  EXPECT_EQ(parsed(text, "").eos_token_ids, (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(parsed(text, "{}").eos_token_ids, (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(parsed(text, R"({"eos_token_id":7})").eos_token_ids, (std::vector<int64_t>{5, 7}));
  EXPECT_EQ(parsed(text, R"({"eos_token_id":[9,5,3,9]})").eos_token_ids,
            (std::vector<int64_t>{5, 7, 9, 3}));
  EXPECT_EQ(parsed(config_text(), R"({"eos_token_id":0,"bos_token_id":3})").eos_token_ids,
            std::vector<int64_t>{0});
  EXPECT_EQ(parsed(config_text(), R"({"eos_token_id":0,"bos_token_id":3})").bos_token_id, 3);
}

TEST(DecoderConfig, NamesTheGenerationFileInItsErrors) {
  expect_error(parse_hf_config(config_text(), "[]", "models/m/config.json"), Code::bad_file,
               "models/m/generation_config.json: at byte 0: expected an object, found an array");
  expect_error(parse_hf_config(config_text(), R"({"eos_token_id":100})", "config.json"),
               Code::bad_file,
               "generation_config.json: at byte 16: eos_token_id: expected an id from 0 to 99, "
               "found 100");
}

}  // namespace
}  // namespace loom::core
