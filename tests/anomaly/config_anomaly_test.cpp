// Damage to config.json: cut at every byte, every single bit flipped, every byte replaced. Refused,
// or a config within the ranges the reader promises; never a crash, never an error of two lines.
#include "anomaly/damage.hpp"
#include "formats/config/config.hpp"
#include "formats/config_testing.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

using test::flip;

using test::config_text;

std::string sample() {
  return config_text(
      {{"num_key_value_heads", "2"},
       {"head_dim", "null"},
       {"hidden_act", "\"silu\""},
       {"rms_norm_eps", "1e-05"},
       {"attention_bias", "false"},
       {"tie_word_embeddings", "true"},
       {"max_position_embeddings", "2048"},
       {"rope_parameters",
        R"({"rope_type":"llama3","rope_theta":500000.0,"factor":8.0,"low_freq_factor":1.0,)"
        R"("high_freq_factor":4.0,"original_max_position_embeddings":1024})"},
       {"layer_types", R"(["full_attention","full_attention"])"},
       {"bos_token_id", "1"},
       {"eos_token_id", "[2,3]"},
       {"note", R"("caf\u00e9 é")"}});
}

// Fields of some architectures only.
std::string gemma_sample() {
  return config_text(
      {{"architectures", R"(["Gemma3ForCausalLM"])"},
       {"model_type", R"("gemma3_text")"},
       {"num_key_value_heads", "2"},
       {"query_pre_attn_scalar", "16"},
       {"final_logit_softcapping", "30.0"},
       {"sliding_window", "512"},
       {"sliding_window_pattern", "2"},
       {"layer_types", R"(["sliding_attention","full_attention"])"},
       {"rope_parameters", R"({"full_attention":{"rope_theta":1e6},)"
                           R"("sliding_attention":{"rope_theta":1e4}})"},
       {"quantization_config", R"({"quant_method":"bitnet","linear_class":"autobitlinear"})"}});
}

constexpr std::string_view kGeneration = R"({"bos_token_id":1,"eos_token_id":[3,5],"top_p":0.9})";

void expect_in_range(const DecoderConfig& c) {
  constexpr int64_t kMax = int64_t{1} << 24;
  for (const int64_t size :
       {c.hidden_size, c.intermediate_size, c.num_layers, c.num_heads, c.num_kv_heads, c.head_dim,
        c.vocab_size, c.max_positions, c.rope_original_max_positions, c.num_heads * c.head_dim}) {
    EXPECT_TRUE(size >= 1 && size <= kMax) << size;
  }
  EXPECT_EQ(c.num_heads % c.num_kv_heads, 0);
  EXPECT_EQ(c.head_dim % 2, 0);
  EXPECT_TRUE(c.rms_norm_eps > 0 && c.rms_norm_eps <= 1);
  EXPECT_TRUE(c.rope_theta >= 1 && c.rope_theta <= 1e15);
  EXPECT_GE(c.rope_factor, 1.0);
  EXPECT_LT(c.rope_low_freq_factor, c.rope_high_freq_factor);
  EXPECT_TRUE(c.layers.empty() || c.layers.size() == static_cast<size_t>(c.num_layers));
  for (const DecoderLayer& layer : c.layers) EXPECT_TRUE(layer.window >= 0 && layer.window < kMax);
  EXPECT_TRUE(c.attention_scale >= 0 && c.attention_soft_cap >= 0 && c.final_soft_cap >= 0);
  EXPECT_TRUE(c.bos_token_id >= -1 && c.bos_token_id < c.vocab_size);
  for (const int64_t id : c.eos_token_ids) EXPECT_TRUE(id >= 0 && id < c.vocab_size);
}

void expect_refused_or_in_range(std::string_view text, std::string_view generation) {
  const auto config = parse_hf_config(text, generation, "config.json");
  if (config.ok()) {
    expect_in_range(*config);
  } else {
    const std::string line = config.error().str();
    EXPECT_FALSE(config.error().message.empty());
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST(ConfigAnomaly, EveryTruncationIsRefused) {
  const std::string text = sample();
  ASSERT_TRUE(parse_hf_config(text, kGeneration, "config.json").ok());
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string cut(text.data(), size);
    EXPECT_FALSE(parse_hf_config(cut, kGeneration, "config.json").ok()) << size;
  }
  // An empty text means that there is no generation_config.json.
  for (size_t size = 1; size < kGeneration.size(); ++size) {
    const std::string cut(kGeneration.data(), size);
    EXPECT_FALSE(parse_hf_config(text, cut, "config.json").ok()) << size;
  }
}

TEST(ConfigAnomaly, EveryFlippedBitIsRefusedOrInRange) {
  const std::string text = sample();
  for (const std::string& whole : {text, gemma_sample()}) {
    ASSERT_TRUE(parse_hf_config(whole, kGeneration, "config.json").ok());
    for (size_t i = 0; i < whole.size() * 8; ++i) {
      const std::string flipped = flip(whole, i);
      expect_refused_or_in_range(flipped, kGeneration);
    }
  }
  for (size_t i = 0; i < kGeneration.size() * 8; ++i) {
    const std::string flipped = flip(std::string(kGeneration), i);
    expect_refused_or_in_range(text, flipped);
  }
}

TEST(ConfigAnomaly, EveryByteReplacedByStructureIsRefusedOrInRange) {
  const std::string text = sample();
  for (size_t at = 0; at < text.size(); ++at) {
    for (const char c : std::string_view("{}[]\",:\\-0e.\n\0\xff", 15)) {
      std::string changed = text;
      changed[at] = c;
      expect_refused_or_in_range(changed, kGeneration);
    }
  }
}

TEST(ConfigAnomaly, EveryTruncationOfJsonIsRefusedAtItsEnd) {
  const std::string text = sample();
  for (size_t size = 0; size < text.size(); ++size) {
    const auto json = parse_json(std::string_view(text).substr(0, size), "t");
    ASSERT_FALSE(json.ok()) << size;
    EXPECT_GE(json.error().offset, 0) << size;
    EXPECT_LE(json.error().offset, static_cast<int64_t>(size)) << size;
  }
}

}  // namespace
}  // namespace loom::core
