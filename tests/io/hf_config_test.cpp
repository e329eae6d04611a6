// parse_hf_config: what is read from good files of each architecture, and the defaults.
#include "io/hf_config.hpp"

#include "io/config_testing.hpp"
#include "io/file.hpp"

namespace loom {
namespace {

using testing::config_text;
using testing::expect_error;

HfConfig parsed(const std::string& text, const std::string& generation = {}) {
  const auto config = parse_hf_config(text, generation, "config.json");
  EXPECT_TRUE(config.ok()) << config.error().str() << "\n" << text;
  return config.ok() ? *config : HfConfig();
}

TEST(HfConfig, ReadsTheSharedCheckpoint) {
  const std::string folder = testing::shared_data("models/shakespeare-llama");
  if (folder.empty()) GTEST_SKIP() << "no shared data beside this checkout";
  const auto text = read_file(folder + "/config.json");
  const auto generation = read_file(folder + "/generation_config.json");
  ASSERT_TRUE(text.ok() && generation.ok());
  const HfConfig config = parsed(*text, *generation);
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

TEST(HfConfig, LlamaHasTheDefaultsOfItsClass) {
  const HfConfig config = parsed(config_text());
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
  EXPECT_EQ(config.bos_token_id, -1);
  EXPECT_TRUE(config.eos_token_ids.empty());
}

TEST(HfConfig, NullIsAsAbsent) {
  const HfConfig config = parsed(config_text({{"head_dim", "null"},
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

TEST(HfConfig, HeadDimNeedNotDivideTheHiddenSize) {
  const HfConfig config = parsed(config_text({{"head_dim", "24"}, {"hidden_size", "63"}}));
  EXPECT_EQ(config.head_dim, 24);
}

TEST(HfConfig, LlamaReadsItsBiases) {
  const HfConfig config = parsed(config_text({{"attention_bias", "true"}, {"mlp_bias", "true"}}));
  EXPECT_TRUE(config.attention_bias);
  EXPECT_TRUE(config.attention_out_bias);
  EXPECT_TRUE(config.mlp_bias);
}

TEST(HfConfig, MistralMayHaveNoWindow) {
  for (const auto& [window, positions] :
       {std::pair{"null", "32768"}, {"4096", "4096"}, {"8192", "4096"}}) {
    const HfConfig config = parsed(config_text({{"architectures", R"(["MistralForCausalLM"])"},
                                                {"model_type", R"("mistral")"},
                                                {"num_key_value_heads", "2"},
                                                {"sliding_window", window},
                                                {"max_position_embeddings", positions}}));
    EXPECT_EQ(config.num_kv_heads, 2);
    EXPECT_FALSE(config.attention_bias);
  }
}

TEST(HfConfig, Qwen2HasBiasesOfQueryKeyAndValue) {
  const HfConfig config = parsed(config_text({{"architectures", R"(["Qwen2ForCausalLM"])"},
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

TEST(HfConfig, Qwen3NormsQueryAndKey) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"architectures", R"(["Qwen3ForCausalLM"])"},
      {"model_type", R"("qwen3")"},
      {"num_key_value_heads", "2"},
      {"layer_types", R"(["full_attention","full_attention"])"}};
  HfConfig config = parsed(config_text(fields));
  EXPECT_TRUE(config.qk_norm);
  EXPECT_FALSE(config.attention_bias);
  EXPECT_EQ(config.head_dim, 128);
  fields.emplace_back("head_dim", "null");
  config = parsed(config_text(fields));
  EXPECT_EQ(config.head_dim, 16);
}

TEST(HfConfig, ReadsEveryActivation) {
  for (const std::string name :
       {"silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "relu2"}) {
    EXPECT_EQ(parsed(config_text({{"hidden_act", '"' + name + '"'}})).hidden_act, name);
  }
}

TEST(HfConfig, ReadsPositionsInBothStyles) {
  const std::string llama3 =
      R"("rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
      R"("original_max_position_embeddings":8192)";
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    HfConfig config = parsed(config_text({{key, "{" + llama3 + "}"}, {"rope_theta", "500000.0"}}));
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
  const HfConfig config =
      parsed(config_text({{"rope_parameters", R"({"rope_theta":1e6,"partial_rotary_factor":1.0})"},
                          {"rope_theta", "1000000"}}));
  EXPECT_EQ(config.rope, RopeKind::standard);
  EXPECT_EQ(config.rope_theta, 1e6);
}

TEST(HfConfig, MergesTheEndsOfBothFiles) {
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

TEST(HfConfig, NamesTheGenerationFileInItsErrors) {
  expect_error(parse_hf_config(config_text(), "[]", "models/m/config.json"), Code::bad_file,
               "models/m/generation_config.json: at byte 0: expected an object, found an array");
  expect_error(parse_hf_config(config_text(), R"({"eos_token_id":100})", "config.json"),
               Code::bad_file,
               "generation_config.json: at byte 16: eos_token_id: expected an id from 0 to 99, "
               "found 100");
}

}  // namespace
}  // namespace loom
