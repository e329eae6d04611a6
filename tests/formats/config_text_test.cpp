#include "formats/config/text_config.hpp"

#include <gtest/gtest.h>

#include "formats/config/config.hpp"

namespace loom::core {
namespace {

DecoderConfig read(const std::string& text) {
  const auto config = parse_hf_config(text_config_json(text), "", "config.json");
  EXPECT_TRUE(config.ok()) << config.error().str();
  return config.ok() ? *config : DecoderConfig();
}

TEST(TextConfig, IsThatOfTheLanguageModelWithItsDefaults) {
  const DecoderConfig c = read(R"({"architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3", "eos_token_id": [1, 106], "vision_config": {"hidden_size": 9},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                    "intermediate_size": 10240, "sliding_window": 1024,
                    "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}})");
  EXPECT_EQ(c.architecture, "Gemma3ForCausalLM");
  EXPECT_EQ(c.num_heads, 8);
  EXPECT_EQ(c.num_kv_heads, 4);
  EXPECT_EQ(c.vocab_size, 262208);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int64_t>{1, 106}));
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_EQ(c.layer(0).window, 1024);
}

TEST(TextConfig, TakesPositionsOfThreeAxesAsPlainOnes) {
  for (const char* rope : {R"("rope_scaling": {"type": "mrope", "mrope_section": [2, 1, 1]})",
                           R"("rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0,
                              "mrope_section": [2, 1, 1], "mrope_interleaved": true})"}) {
    const DecoderConfig c = read(std::string(R"({"architectures": [
      "Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "hidden_size": 32,
      "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 99, "vision_config": {}, )") +
                                 rope + "}");
    EXPECT_EQ(c.architecture, "Qwen2ForCausalLM");
    EXPECT_EQ(c.rope, RopeKind::standard);
    EXPECT_EQ(c.rope_theta, 1e6);
    EXPECT_EQ(c.rms_norm_eps, 1e-5) << "of the text configuration";
    EXPECT_TRUE(c.attention_bias);
  }
}

TEST(TextConfig, LeavesOtherTextsAsTheyAre) {
  for (const char* text :
       {"", "no JSON", "[]", R"({"architectures": ["LlamaForCausalLM"], "text_config": {}})",
        R"({"architectures": ["MllamaForConditionalGeneration"], "text_config": {}})",
        R"({"architectures": ["LlavaForConditionalGeneration"],
            "text_config": {"model_type": "unknown"}})"})
    EXPECT_EQ(text_config_json(text), text);
}

}  // namespace
}  // namespace loom::core
