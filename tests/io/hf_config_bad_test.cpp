// Config files that are refused: malformed, inconsistent, or asking for what this engine does not
// compute. Each row changes one or two fields of a good config and gives the exact message.
#include "base/text.hpp"
#include "io/config_testing.hpp"
#include "io/hf_config.hpp"

namespace loom {
namespace {

using testing::config_text;
using testing::ConfigChanges;
using testing::expect_error;

struct Refused {
  ConfigChanges changes;
  std::string message;  // without place
};

void expect_refused(const Refused& row, Code code) {
  const std::string text = config_text(row.changes);
  const auto config = parse_hf_config(text, "", "config.json");
  ASSERT_FALSE(config.ok()) << "expected: " << row.message << "\n" << text;
  EXPECT_EQ(config.error().message, row.message) << text;
  EXPECT_EQ(code_name(config.error().code), code_name(code));
  EXPECT_EQ(config.error().where, "config.json");
}

class MalformedConfig : public ::testing::TestWithParam<Refused> {};

TEST_P(MalformedConfig, IsRefusedByField) {
  expect_refused(GetParam(), Code::bad_file);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, MalformedConfig,
    ::testing::Values(
        Refused{{{"hidden_size", ""}}, "hidden_size: required, but absent"},
        Refused{{{"hidden_size", "null"}}, "hidden_size: required, but absent"},
        Refused{{{"intermediate_size", ""}}, "intermediate_size: required, but absent"},
        Refused{{{"num_hidden_layers", ""}}, "num_hidden_layers: required, but absent"},
        Refused{{{"num_attention_heads", ""}}, "num_attention_heads: required, but absent"},
        Refused{{{"vocab_size", ""}}, "vocab_size: required, but absent"},
        Refused{{{"hidden_size", "0"}},
                "hidden_size: expected an integer from 1 to 16777216, found 0"},
        Refused{{{"hidden_size", "-64"}},
                "hidden_size: expected an integer from 1 to 16777216, found -64"},
        Refused{{{"hidden_size", "16777217"}},
                "hidden_size: expected an integer from 1 to 16777216, found 16777217"},
        Refused{{{"hidden_size", "18446744073709551615"}},
                "hidden_size: expected an integer from 1 to 16777216, found 18446744073709551615"},
        Refused{{{"hidden_size", "64.0"}},
                "hidden_size: expected an integer from 1 to 16777216, found 64.0"},
        Refused{{{"hidden_size", "\"64\""}},
                "hidden_size: expected an integer from 1 to 16777216, found \"64\""},
        Refused{{{"vocab_size", "[100]"}},
                "vocab_size: expected an integer from 1 to 16777216, found an array"},
        Refused{{{"max_position_embeddings", "0"}},
                "max_position_embeddings: expected an integer from 1 to 16777216, found 0"},
        Refused{{{"rms_norm_eps", "0"}},
                "rms_norm_eps: expected a number from 1e-30 to 1.0, found 0"},
        Refused{{{"rms_norm_eps", "-1e-5"}},
                "rms_norm_eps: expected a number from 1e-30 to 1.0, found -1e-05"},
        Refused{{{"rms_norm_eps", "\"1e-5\""}},
                "rms_norm_eps: expected a number from 1e-30 to 1.0, found \"1e-5\""},
        Refused{{{"hidden_size", "16777216"},
                 {"head_dim", "2"},
                 {"intermediate_size", "16777216"},
                 {"num_hidden_layers", "16777216"}},
                "num_hidden_layers: these sizes make more than 2^48 weights"},
        Refused{{{"hidden_size", "16777216"}, {"head_dim", "2"}, {"vocab_size", "16777216"}},
                "num_hidden_layers: these sizes make more than 2^48 weights"}));

INSTANTIATE_TEST_SUITE_P(
    Heads, MalformedConfig,
    ::testing::Values(
        Refused{{{"num_key_value_heads", "3"}},
                "num_key_value_heads: 3 does not divide num_attention_heads 4"},
        Refused{{{"num_key_value_heads", "8"}},
                "num_key_value_heads: 8 does not divide num_attention_heads 4"},
        Refused{{{"num_key_value_heads", "0"}},
                "num_key_value_heads: expected an integer from 1 to 16777216, found 0"},
        Refused{
            {{"hidden_size", "66"}},
            "hidden_size: 66 is no multiple of num_attention_heads 4, and there is no head_dim"},
        Refused{{{"hidden_size", "60"}}, "head_dim: 15 is odd; rotary positions need pairs"},
        Refused{{{"head_dim", "7"}}, "head_dim: 7 is odd; rotary positions need pairs"},
        Refused{{{"head_dim", "1"}}, "head_dim: expected an integer from 2 to 16777216, found 1"},
        Refused{{{"head_dim", "8388608"}},
                "head_dim: 4 heads of 8388608 are more than 16777216 columns"},
        Refused{{{"architectures", R"(["MistralForCausalLM"])"}, {"model_type", R"("mistral")"}},
                "num_key_value_heads: required, but absent"}));

INSTANTIATE_TEST_SUITE_P(
    Names, MalformedConfig,
    ::testing::Values(
        Refused{{{"architectures", ""}}, "architectures: required, but absent"},
        Refused{{{"architectures", "null"}}, "architectures: required, but absent"},
        Refused{{{"architectures", "\"LlamaForCausalLM\""}},
                "architectures: expected a list of one name"},
        Refused{{{"architectures", "[]"}}, "architectures: expected a list of one name"},
        Refused{{{"architectures", "[1]"}}, "architectures: expected a list of one name"},
        Refused{{{"architectures", R"(["LlamaForCausalLM","X"])"}},
                "architectures: expected a list of one name"},
        Refused{{{"model_type", "\"mistral\""}},
                "model_type: expected \"llama\" for LlamaForCausalLM, found \"mistral\""},
        Refused{{{"model_type", "3"}}, "model_type: expected a string, found 3"},
        Refused{{{"hidden_act", "[]"}}, "hidden_act: expected a string, found an array"},
        Refused{{{"tie_word_embeddings", "1"}},
                "tie_word_embeddings: expected true or false, found 1"},
        Refused{{{"attention_bias", "\"no\""}},
                "attention_bias: expected true or false, found \"no\""}));

INSTANTIATE_TEST_SUITE_P(
    Positions, MalformedConfig,
    ::testing::Values(
        Refused{{{"rope_theta", "0"}}, "rope_theta: expected a number from 1.0 to 1e+15, found 0"},
        Refused{{{"rope_theta", "\"big\""}},
                "rope_theta: expected a number from 1.0 to 1e+15, found \"big\""},
        Refused{{{"rope_scaling", "2.0"}}, "rope_scaling: expected an object, found 2.0"},
        Refused{{{"rope_scaling", "{}"}}, "rope_scaling.rope_type: required, but absent"},
        Refused{{{"rope_scaling", R"({"factor":2.0})"}},
                "rope_scaling.rope_type: required, but absent"},
        Refused{{{"rope_scaling", R"({"type":"linear"})"}},
                "rope_scaling.factor: required, but absent"},
        Refused{{{"rope_scaling", R"({"type":"linear","factor":0.5})"}},
                "rope_scaling.factor: expected a number from 1.0 to 1000000.0, found 0.5"},
        Refused{{{"rope_scaling", R"({"type":"linear","rope_type":"llama3","factor":2})"}},
                "rope_scaling.type: \"linear\" contradicts rope_type \"llama3\""},
        Refused{{{"rope_scaling", R"({"rope_type":5})"}},
                "rope_scaling.rope_type: expected a string, found 5"},
        Refused{{{"rope_parameters", R"({"rope_type":"llama3","factor":8})"}},
                "rope_parameters.low_freq_factor: required, but absent"},
        Refused{{{"rope_parameters",
                  R"({"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4,)"
                  R"("original_max_position_embeddings":8192})"}},
                "rope_parameters.high_freq_factor: must be larger than low_freq_factor"},
        Refused{{{"rope_parameters",
                  R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,)"
                  R"("original_max_position_embeddings":0})"}},
                "rope_parameters.original_max_position_embeddings: expected an integer from 1 to "
                "16777216, found 0"},
        Refused{{{"rope_parameters", R"({"rope_theta":1e6})"}, {"rope_theta", "1e5"}},
                "rope_parameters.rope_theta: contradicts the rope_theta outside"},
        Refused{{{"rope_parameters", "{}"}, {"rope_scaling", R"({"type":"default"})"}},
                "rope_parameters: written together with rope_scaling; keep one of them"}));

INSTANTIATE_TEST_SUITE_P(
    Tokens, MalformedConfig,
    ::testing::Values(
        Refused{{{"bos_token_id", "100"}},
                "bos_token_id: expected an integer from 0 to 99, found 100"},
        Refused{{{"bos_token_id", "[1]"}},
                "bos_token_id: expected an integer from 0 to 99, found an array"},
        Refused{{{"eos_token_id", "-1"}}, "eos_token_id: expected an id from 0 to 99, found -1"},
        Refused{{{"eos_token_id", "100"}}, "eos_token_id: expected an id from 0 to 99, found 100"},
        Refused{{{"eos_token_id", "[1,\"2\"]"}},
                "eos_token_id: expected an id from 0 to 99, found \"2\""},
        Refused{{{"eos_token_id", "{}"}},
                "eos_token_id: expected an id from 0 to 99, found an object"},
        Refused{{{"layer_types", R"(["full_attention"])"}},
                "layer_types: expected a list of 2 names"},
        Refused{{{"layer_types", "\"full_attention\""}},
                "layer_types: expected a list of 2 names"}));

class UnsupportedConfig : public ::testing::TestWithParam<Refused> {};

TEST_P(UnsupportedConfig, IsRefusedByField) {
  expect_refused(GetParam(), Code::unsupported);
}

const ConfigChanges kMistral = {{"architectures", R"(["MistralForCausalLM"])"},
                                {"model_type", R"("mistral")"},
                                {"num_key_value_heads", "2"}};
const ConfigChanges kQwen2 = {{"architectures", R"(["Qwen2ForCausalLM"])"},
                              {"model_type", R"("qwen2")"},
                              {"num_key_value_heads", "2"}};

ConfigChanges with(ConfigChanges base, const ConfigChanges& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

INSTANTIATE_TEST_SUITE_P(
    Fields, UnsupportedConfig,
    ::testing::Values(
        Refused{{{"architectures", R"(["GPT2LMHeadModel"])"}},
                "architectures: \"GPT2LMHeadModel\" is not supported; these are: "
                "LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM"},
        Refused{{{"hidden_act", "\"swish\""}},
                "hidden_act: \"swish\" is not supported; these are: silu, gelu, gelu_new, "
                "gelu_pytorch_tanh, relu, relu2"},
        Refused{{{"hidden_act", "\"\""}},
                "hidden_act: \"\" is not supported; these are: silu, gelu, gelu_new, "
                "gelu_pytorch_tanh, relu, relu2"},
        Refused{{{"pretraining_tp", "2"}}, "pretraining_tp: 2 is not supported; only 1 is"},
        Refused{{{"partial_rotary_factor", "0.5"}},
                "partial_rotary_factor: 0.5 is not supported; only 1 is"},
        Refused{{{"quantization_config", R"({"quant_method":"gptq"})"}},
                "quantization_config: quantised checkpoints are not supported; load the original "
                "one"},
        Refused{{{"compression_config", "{}"}},
                "compression_config: quantised checkpoints are not supported; load the original "
                "one"},
        Refused{{{"is_encoder_decoder", "true"}}, "is_encoder_decoder: true is not supported"},
        Refused{{{"add_cross_attention", "true"}}, "add_cross_attention: true is not supported"},
        Refused{{{"layer_types", R"(["full_attention","sliding_attention"])"}},
                "layer_types: \"sliding_attention\" is not supported"}));

INSTANTIATE_TEST_SUITE_P(
    FixedByTheArchitecture, UnsupportedConfig,
    ::testing::Values(Refused{with(kMistral,
                                   {{"sliding_window", "null"}, {"attention_bias", "true"}}),
                              "attention_bias: MistralForCausalLM always has false"},
                      Refused{with(kMistral, {{"sliding_window", "null"}, {"mlp_bias", "true"}}),
                              "mlp_bias: MistralForCausalLM always has false"},
                      Refused{with(kQwen2, {{"attention_bias", "false"}}),
                              "attention_bias: Qwen2ForCausalLM always has true"}));

INSTANTIATE_TEST_SUITE_P(
    Windows, UnsupportedConfig,
    ::testing::Values(
        Refused{with(kMistral, {{"sliding_window", "4096"}, {"max_position_embeddings", "32768"}}),
                "sliding_window: 4096 is shorter than max_position_embeddings 32768; sliding "
                "attention is not supported"},
        Refused{with(kMistral, {{"max_position_embeddings", "32768"}}),
                "sliding_window: 4096 (the default) is shorter than max_position_embeddings 32768; "
                "sliding attention is not supported"},
        Refused{with(kQwen2, {{"use_sliding_window", "true"}, {"sliding_window", "1024"}}),
                "sliding_window: 1024 is shorter than max_position_embeddings 32768; sliding "
                "attention is not supported"},
        Refused{with(kQwen2, {{"use_sliding_window", "true"}}),
                "sliding_window: 4096 (the default) is shorter than max_position_embeddings 32768; "
                "sliding attention is not supported"}));

INSTANTIATE_TEST_SUITE_P(
    Positions, UnsupportedConfig,
    ::testing::Values(
        Refused{
            {{"rope_scaling", R"({"rope_type":"yarn","factor":4.0,"beta_fast":32})"}},
            "rope_scaling.rope_type: \"yarn\" is not supported; default, linear and llama3 are"},
        Refused{{{"rope_scaling", R"({"type":"dynamic","factor":4.0})"}},
                "rope_scaling.type: \"dynamic\" is not supported; default, linear and llama3 are"},
        Refused{{{"rope_scaling", R"({"type":"longrope","long_factor":[1]})"}},
                "rope_scaling.type: \"longrope\" is not supported; default, linear and llama3 are"},
        Refused{{{"rope_parameters", R"({"rope_type":"default","mrope_section":[1,2]})"}},
                "rope_parameters.mrope_section: unknown field"},
        Refused{{{"rope_parameters", R"({"full_attention":{"rope_type":"default"}})"}},
                "rope_parameters.full_attention: unknown field"},
        Refused{{{"rope_parameters", R"({"partial_rotary_factor":0.25})"}},
                "rope_parameters.partial_rotary_factor: 0.25 is not supported; only 1 is"}));

TEST(ConfigErrors, CarryTheOffsetOfTheValue) {
  const std::string text = config_text({{"hidden_act", "\"x\""}});
  const auto config = parse_hf_config(text, "", "config.json");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().offset, static_cast<int64_t>(text.find("\"x\"")));
  expect_error(parse_hf_config("[1]", "", "c"), Code::bad_file,
               "c: at byte 0: expected an object, found an array");
  expect_error(parse_hf_config("", "", "c"), Code::bad_file,
               "c: at byte 0: expected a value, found the end of the text");
  expect_error(parse_hf_config("{\"a\":1,\"a\":2}", "", "c"), Code::bad_file,
               "c: at byte 7: duplicate key \"a\"");
}

TEST(ConfigErrors, LimitTheListOfEnds) {
  std::string ids = "[0";
  for (int i = 0; i < 256; ++i) ids += ",1";
  expect_error(parse_hf_config(config_text({{"eos_token_id", ids + "]"}}), "", "c"), Code::bad_file,
               cat("c: at byte ", config_text({{"eos_token_id", "["}}).find("[}"),
                   ": eos_token_id: more than 256 ids"));
}

}  // namespace
}  // namespace loom
