// Limits of llama.cpp's graphs, found by random decoders that llama.cpp read
// (tests/outside/export_models.py).
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "formats/gguf/export.hpp"
#include "formats/gguf/graph_limits.hpp"
#include "formats/gguf_testing.hpp"

namespace loom::core {
namespace {

using test::TemporaryFolder;

TEST(GgufGraphs, AreNotWrittenIfLlamaCppRefusesThem) {
  const struct {
    const char* members;
    const char* error;     // after "llama.cpp reads no '" ...
    int64_t head_dim = 0;  // in place of 16
  } rows[] = {
      {R"("architectures":["Qwen2ForCausalLM"],"model_type":"qwen2")",
       "qwen2' file with head_dim 32 x 4 heads and hidden_size 64", 32},
      {R"("architectures":["Starcoder2ForCausalLM"],"model_type":"starcoder2")",
       "starcoder2' file with head_dim 8 x 4 heads and hidden_size 64", 8},
      {R"("architectures":["Phi3ForCausalLM"],"model_type":"phi3")",
       "phi3' file with head_dim 32 x 4 heads and hidden_size 64", 32},
      {R"("architectures":["BitNetForCausalLM"],"model_type":"bitnet","hidden_act":"silu",
          "tie_word_embeddings":false)",
       "bitnet' file with tie_word_embeddings false"},
      {R"("architectures":["GemmaForCausalLM"],"model_type":"gemma","tie_word_embeddings":false)",
       "gemma' file with tie_word_embeddings false"},
      {R"("architectures":["Gemma2ForCausalLM"],"model_type":"gemma2",
          "query_pre_attn_scalar":16,"tie_word_embeddings":false)",
       "gemma2' file with tie_word_embeddings false"},
      {R"("architectures":["Qwen2MoeForCausalLM"],"model_type":"qwen2_moe",
          "tie_word_embeddings":true)",
       "qwen2moe' file with tie_word_embeddings true"},
      {R"("architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","attention_bias":true)",
       "qwen3' file with a bias of the attention's output"},
      {R"("architectures":["SmolLM3ForCausalLM"],"model_type":"smollm3","mlp_bias":true)",
       "smollm3' file with mlp_bias"},
      {R"("architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","rope_parameters":{
          "rope_type":"llama3","rope_theta":10000.0,"factor":8.0,"low_freq_factor":1.0,
          "high_freq_factor":4.0,"original_max_position_embeddings":8192})",
       "qwen3' file with rope_type llama3"},
  };
  const TemporaryFolder folder;
  for (const auto& row : rows) {
    DecoderConfig config = parsed(row.members);
    if (row.head_dim > 0) config.head_dim = row.head_dim;
    const MadeSource made(std::move(config));
    const Status status = write_gguf(folder.path("m"), made);
    EXPECT_EQ(status.ok() ? "" : status.error().str(),
              cat("llama.cpp reads no '", row.error, "; write an .entity file"));
    EXPECT_EQ(folder.file_count(), 0u);
  }
}

TEST(GgufGraphs, HaveExpertsInEveryLayerAndOneRuleOfTheirWeights) {
  const struct {
    const char* members;
    const char* what;
  } rows[] = {{R"("norm_topk_prob":false)", "its experts"},
              {R"("norm_topk_prob":true,"mlp_only_layers":[0])", "the layers without experts"}};
  const TemporaryFolder folder;
  for (const auto& row : rows) {
    const MadeSource made(parsed(
        cat(R"("architectures":["Qwen3MoeForCausalLM"],"model_type":"qwen3_moe",)", row.members)));
    EXPECT_EQ(
        write_gguf(folder.path("m"), made).error().str(),
        cat("GGUF files of 'qwen3moe' cannot say ", row.what, " of this Qwen3MoeForCausalLM"));
  }
}

TEST(GgufGraphs, SayWhereLlamaCppComputesWithoutAWindow) {
  const auto phi3 = [](const std::string& more) {
    return gguf_graph_notes(
        parsed(R"("architectures":["Phi3ForCausalLM"],"model_type":"phi3")" + more));
  };
  EXPECT_EQ(phi3(R"(,"sliding_window":40)"),
            std::vector<std::string>{"llama.cpp gives other logits of long texts: sliding_window: "
                                     "its 'phi3' sees all earlier tokens"});
  EXPECT_TRUE(phi3(R"(,"sliding_window":512)").empty());
  EXPECT_TRUE(phi3(R"(,"sliding_window":null)").empty());
  EXPECT_TRUE(gguf_graph_notes(parsed(R"("architectures":["Gemma2ForCausalLM"],
      "model_type":"gemma2","query_pre_attn_scalar":16,"sliding_window":32)"))
                  .empty());
}

}  // namespace
}  // namespace loom::core
