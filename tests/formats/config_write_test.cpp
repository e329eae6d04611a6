// hf_config_json output reads back as the same config, field by field: for every config.json of the
// goldens, and for one shape of each architecture with its optional fields.
#include <gmock/gmock.h>

#include "base/text.hpp"
#include "formats/config/config.hpp"
#include "formats/config_testing.hpp"
#include "io/files/file.hpp"
#include "io/io_testing.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using Changes = std::vector<std::pair<std::string, std::string>>;

// The names of fields that differ. ternary_weights is not written: the weights next to a written
// config are full ones.
std::string differing(const DecoderConfig& a, const DecoderConfig& b) {
  std::vector<std::string> names;
  const auto field = [&](const char* name, auto member) {
    if (!(a.*member == b.*member)) names.emplace_back(name);
  };
#define LOOM_FIELD(name) field(#name, &DecoderConfig::name)
  LOOM_FIELD(architecture);
  LOOM_FIELD(model_type);
  LOOM_FIELD(hidden_size);
  LOOM_FIELD(intermediate_size);
  LOOM_FIELD(num_layers);
  LOOM_FIELD(num_heads);
  LOOM_FIELD(num_kv_heads);
  LOOM_FIELD(head_dim);
  LOOM_FIELD(vocab_size);
  LOOM_FIELD(max_positions);
  LOOM_FIELD(rms_norm_eps);
  LOOM_FIELD(hidden_act);
  LOOM_FIELD(tie_word_embeddings);
  LOOM_FIELD(attention_bias);
  LOOM_FIELD(attention_out_bias);
  LOOM_FIELD(mlp_bias);
  LOOM_FIELD(head_bias);
  LOOM_FIELD(layer_norms);
  LOOM_FIELD(gated_mlp);
  LOOM_FIELD(learned_positions);
  LOOM_FIELD(residual);
  LOOM_FIELD(qk_norm);
  LOOM_FIELD(sub_norms);
  LOOM_FIELD(post_norms);
  LOOM_FIELD(embedding_scale);
  LOOM_FIELD(attention_scale);
  LOOM_FIELD(attention_soft_cap);
  LOOM_FIELD(final_soft_cap);
  LOOM_FIELD(layers);
  LOOM_FIELD(rope_theta);
  LOOM_FIELD(rope);
  LOOM_FIELD(rope_factor);
  LOOM_FIELD(rope_low_freq_factor);
  LOOM_FIELD(rope_high_freq_factor);
  LOOM_FIELD(rope_original_max_positions);
  LOOM_FIELD(rope_attention);
  LOOM_FIELD(rope_beta_fast);
  LOOM_FIELD(rope_beta_slow);
  LOOM_FIELD(rope_truncate);
  LOOM_FIELD(rope_short);
  LOOM_FIELD(rope_long);
  LOOM_FIELD(rope_width);
  LOOM_FIELD(rope_local_theta);
  LOOM_FIELD(unit_offset_norms);
  LOOM_FIELD(bos_token_id);
  LOOM_FIELD(eos_token_ids);
#undef LOOM_FIELD
  return join(names, ", ");
}

void expect_same_after_writing(const std::string& text) {
  const auto read = parse_hf_config(text, "", "first");
  ASSERT_TRUE(read.ok()) << read.error().str() << "\n" << text;
  const std::string written = hf_config_json(*read);
  const auto again = parse_hf_config(written, "", "again");
  ASSERT_TRUE(again.ok()) << again.error().str() << "\n" << written;
  EXPECT_EQ(differing(*read, *again), "") << text << "\n" << written;
  EXPECT_EQ(hf_config_json(*again), written);
}

TEST(HfConfigWrite, EveryGoldenReadsBack) {
  const std::filesystem::path root = loom_test::source_path("tests/llm/golden");
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    const std::filesystem::path path = entry.path() / "config.json";
    if (!std::filesystem::exists(path)) continue;
    SCOPED_TRACE(path.string());
    const auto text = read_file(path.string());
    ASSERT_TRUE(text.ok());
    expect_same_after_writing(*text);
    ++count;
  }
  EXPECT_GE(count, 21u);
}

struct Family {
  const char* architecture;
  const char* model_type;
};
constexpr Family kFamilies[] = {
    {"LlamaForCausalLM", "llama"},          {"MistralForCausalLM", "mistral"},
    {"Qwen2ForCausalLM", "qwen2"},          {"Qwen3ForCausalLM", "qwen3"},
    {"GemmaForCausalLM", "gemma"},          {"Gemma2ForCausalLM", "gemma2"},
    {"Gemma3ForCausalLM", "gemma3_text"},   {"Phi3ForCausalLM", "phi3"},
    {"SmolLM3ForCausalLM", "smollm3"},      {"BitNetForCausalLM", "bitnet"},
    {"Starcoder2ForCausalLM", "starcoder2"}};

// The small config of the tests as one of this family, with these fields.
std::string of_family(const Family& family, const Changes& more) {
  Changes all = {{"architectures", cat("[\"", family.architecture, "\"]")},
                 {"model_type", cat("\"", family.model_type, "\"")},
                 {"num_hidden_layers", "6"},
                 {"num_key_value_heads", "2"},
                 {"max_position_embeddings", "256"}};
  all.insert(all.end(), more.begin(), more.end());
  return test::config_text(all);
}

// Fields that every class reads.
const Changes kShared[] = {
    {},
    {{"num_key_value_heads", "4"}, {"head_dim", "16"}},
    {{"head_dim", "null"}},
    {{"rms_norm_eps", "1e-05"}, {"max_position_embeddings", "2"}},
    {{"tie_word_embeddings", "true"}},
    {{"tie_word_embeddings", "false"}},
    {{"bos_token_id", "0"}, {"eos_token_id", "[7, 3, 7]"}},
    {{"bos_token_id", "null"}, {"eos_token_id", "null"}},
    {{"bos_token_id", "99"}, {"eos_token_id", "99"}},
    {{"rope_theta", "123456.789"}},
    {{"vocab_size", "200000"}},
    {{"num_hidden_layers", "1"}},
};

TEST(HfConfigWrite, WhatEveryClassReadsComesBack) {
  for (const Family& family : kFamilies) {
    for (const Changes& changes : kShared) {
      SCOPED_TRACE(family.architecture);
      expect_same_after_writing(of_family(family, changes));
    }
  }
}

TEST(HfConfigWrite, ActivationsComeBack) {
  for (const Family& family : kFamilies) {
    for (const char* act : {"silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "relu2"}) {
      SCOPED_TRACE(family.architecture);
      const std::string quoted = cat("\"", act, "\"");
      expect_same_after_writing(
          of_family(family, {{"hidden_act", quoted}, {"hidden_activation", quoted}}));
    }
  }
}

TEST(HfConfigWrite, LongropeComesBack) {
  const std::string list = "[1,1.5,2,2.5,3,1.0299999713897705,7,8]";
  const std::string rope = R"({"rope_type":"longrope","attention_factor":1.25,"short_factor":)" +
                           list + R"(,"long_factor":)" + list + "}";
  for (const Family& family : kFamilies) {
    const std::string_view name = family.architecture;
    if (name != "Phi3ForCausalLM" && name != "LlamaForCausalLM") continue;
    SCOPED_TRACE(name);
    expect_same_after_writing(of_family(family, {{"rope_scaling", rope}}));
    expect_same_after_writing(
        of_family(family, {{"rope_scaling", rope}, {"original_max_position_embeddings", "64"}}));
  }
}

TEST(HfConfigWrite, RopeComesBack) {
  const char* scalings[] = {
      R"({"rope_type":"default"})",
      R"({"rope_type":"linear","factor":2.5})",
      R"({"rope_type":"llama3","factor":8,"low_freq_factor":1.25,"high_freq_factor":4.5,)"
      R"("original_max_position_embeddings":64})",
      R"({"rope_type":"yarn","factor":8,"beta_fast":20,"beta_slow":2,"truncate":false,)"
      R"("original_max_position_embeddings":64})",
      R"({"rope_type":"yarn","mscale":0.7,"mscale_all_dim":1.3,"factor":3})",
      R"({"rope_type":"dynamic","factor":2})"};
  for (const Family& family : kFamilies) {
    for (const char* scaling : scalings) {
      SCOPED_TRACE(family.architecture);
      const bool older = std::string_view(family.architecture) == "Phi3ForCausalLM";
      if (older && std::string_view(scaling).find("yarn") != std::string_view::npos) continue;
      expect_same_after_writing(of_family(family, {{"rope_scaling", scaling}}));
      expect_same_after_writing(
          of_family(family, {{"rope_scaling", scaling}, {"rope_theta", "777.25"}}));
    }
  }
}

// Fields of some classes only, by the index of kFamilies.
struct Own {
  size_t family;
  Changes changes;
};
const Own kOwn[] = {
    {0, {{"attention_bias", "true"}}},
    {0, {{"attention_bias", "true"}, {"mlp_bias", "true"}}},
    {0, {{"mlp_bias", "true"}}},
    {1, {{"sliding_window", "5"}}},
    {1, {{"sliding_window", "null"}}},
    {1, {{"sliding_window", "1"}, {"num_hidden_layers", "1"}}},
    {2, {{"use_sliding_window", "true"}, {"sliding_window", "9"}, {"max_window_layers", "2"}}},
    {2, {{"use_sliding_window", "true"}, {"sliding_window", "9"}, {"max_window_layers", "0"}}},
    {2, {{"use_sliding_window", "true"}, {"sliding_window", "9"}, {"max_window_layers", "6"}}},
    {2, {{"use_sliding_window", "true"}, {"sliding_window", "256"}, {"max_window_layers", "2"}}},
    {3, {{"use_sliding_window", "true"}, {"sliding_window", "9"}, {"max_window_layers", "3"}}},
    {3, {{"attention_bias", "true"}}},
    {4, {{"attention_bias", "true"}}},
    {5, {{"sliding_window", "5"}}},
    {5, {{"sliding_window", "5000"}}},
    {5, {{"query_pre_attn_scalar", "20"}}},
    {5, {{"query_pre_attn_scalar", "0.3"}}},
    {5, {{"query_pre_attn_scalar", "144.7"}}},
    {5, {{"query_pre_attn_scalar", "224"}, {"attn_logit_softcapping", "null"}}},
    {5, {{"final_logit_softcapping", "null"}}},
    {5, {{"final_logit_softcapping", "1.125"}, {"attn_logit_softcapping", "0.1"}}},
    {6, {{"rope_local_base_freq", "50"}, {"sliding_window", "4"}}},
    {6, {{"sliding_window_pattern", "2"}, {"sliding_window", "4"}}},
    {6, {{"sliding_window_pattern", "1"}, {"sliding_window", "4"}}},
    {6, {{"sliding_window_pattern", "100"}, {"sliding_window", "4"}}},
    {6, {{"sliding_window_pattern", "3"}, {"sliding_window", "5000"}}},
    {6, {{"sliding_window_pattern", "1"}, {"rope_local_base_freq", "77"}}},
    {6, {{"final_logit_softcapping", "30"}}},
    {6, {{"query_pre_attn_scalar", "168"}, {"rope_scaling", R"({"type":"linear","factor":8})"}}},
    {7, {{"partial_rotary_factor", "0.5"}}},
    {7, {{"partial_rotary_factor", "0.4"}}},
    {7, {{"partial_rotary_factor", "1.0"}}},
    {7, {{"partial_rotary_factor", "0.75"}, {"head_dim", "24"}}},
    {7, {{"partial_rotary_factor", "0.76"}, {"head_dim", "106"}, {"sliding_window", "9"}}},
    {8, {{"no_rope_layers", "[1,0,1,1,0,0]"}}},
    {8, {{"no_rope_layers", "[1,1,1,1,1,1]"}}},
    {8, {{"no_rope_layer_interval", "1"}}},
    {8, {{"use_sliding_window", "true"}, {"sliding_window", "6"}}},
    {8, {{"use_sliding_window", "true"}, {"sliding_window", "600"}}},
    {8,
     {{"use_sliding_window", "true"},
      {"sliding_window", "6"},
      {"no_rope_layers", "[1,1,1,1,1,1]"}}},
    {8, {{"mlp_bias", "true"}, {"attention_bias", "true"}}},
    {9, {{"attention_bias", "true"}}},
    {10, {{"sliding_window", "5"}}},
    {10, {{"norm_epsilon", "1e-3"}}},
};

TEST(HfConfigWrite, WhatOnlySomeClassesHaveComesBack) {
  for (const Own& own : kOwn) {
    const Family& family = kFamilies[own.family];
    SCOPED_TRACE(family.architecture);
    expect_same_after_writing(of_family(family, own.changes));
  }
}

// Each head width and each rotated width.
TEST(HfConfigWrite, EveryPartOfAHeadComesBack) {
  for (int64_t dim = 2; dim <= 128; dim += 2) {
    for (int64_t width = 2; width <= dim; width += 2) {
      const double part = static_cast<double>(width) / static_cast<double>(dim);
      DecoderConfig config = *parse_hf_config(
          of_family(kFamilies[7], {{"head_dim", std::to_string(dim)}}), "", "first");
      config.rope_width = part == 1.0 ? 0 : width;
      const auto again = parse_hf_config(hf_config_json(config), "", "again");
      ASSERT_TRUE(again.ok()) << again.error().str();
      EXPECT_EQ(differing(config, *again), "") << width << " of " << dim;
    }
  }
}

// transformers did not open such a folder: "Padding_idx must be within num_embeddings".
TEST(HfConfigWrite, AClassHasNoPaddingTokenBeyondTheVocabulary) {
  const auto written = [](const char* architecture, int64_t vocabulary) {
    DecoderConfig config = *parse_hf_config(test::config_text(), "", "first");
    config.architecture = architecture;
    config.vocab_size = vocabulary;
    return hf_config_json(config);
  };
  using testing::HasSubstr;
  using testing::Not;
  EXPECT_THAT(written("Phi3ForCausalLM", 32000), HasSubstr("\"pad_token_id\": null"));
  EXPECT_THAT(written("Phi3ForCausalLM", 32064), Not(HasSubstr("pad_token_id")));
  EXPECT_THAT(written("SmolLM3ForCausalLM", 1024), HasSubstr("\"pad_token_id\": null"));
  EXPECT_THAT(written("LlamaForCausalLM", 100), Not(HasSubstr("pad_token_id")));
}

}  // namespace
}  // namespace loom::core
