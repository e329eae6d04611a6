// Config files that are refused: malformed, inconsistent, or with unsupported features. Each row
// changes one or two fields of a good config and has the exact message.
#include "base/text.hpp"
#include "families/family.hpp"
#include "formats/config/config.hpp"
#include "formats/config_testing.hpp"

namespace loom::core {
namespace {

using test::config_text;
using test::ConfigChanges;
using test::expect_error;

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

void check_malformed_config(const Refused& row) {
  expect_refused(row, Code::bad_file);
}

const std::vector<Refused> kSizes = {
    {{{"hidden_size", ""}}, "hidden_size: required, but absent"},
    {{{"hidden_size", "null"}}, "hidden_size: required, but absent"},
    {{{"intermediate_size", ""}}, "intermediate_size: required, but absent"},
    {{{"num_hidden_layers", ""}}, "num_hidden_layers: required, but absent"},
    {{{"num_attention_heads", ""}}, "num_attention_heads: required, but absent"},
    {{{"vocab_size", ""}}, "vocab_size: required, but absent"},
    {{{"hidden_size", "0"}}, "hidden_size: expected an integer from 1 to 16777216, found 0"},
    {{{"hidden_size", "-64"}}, "hidden_size: expected an integer from 1 to 16777216, found -64"},
    {{{"hidden_size", "16777217"}},
     "hidden_size: expected an integer from 1 to 16777216, found 16777217"},
    {{{"hidden_size", "18446744073709551615"}},
     "hidden_size: expected an integer from 1 to 16777216, found 18446744073709551615"},
    {{{"hidden_size", "64.0"}}, "hidden_size: expected an integer from 1 to 16777216, found 64.0"},
    {{{"hidden_size", "\"64\""}},
     "hidden_size: expected an integer from 1 to 16777216, found \"64\""},
    {{{"vocab_size", "[100]"}},
     "vocab_size: expected an integer from 1 to 16777216, found an array"},
    {{{"max_position_embeddings", "0"}},
     "max_position_embeddings: expected an integer from 1 to 16777216, found 0"},
    {{{"rms_norm_eps", "0"}}, "rms_norm_eps: expected a number from 1e-30 to 1.0, found 0"},
    {{{"rms_norm_eps", "-1e-5"}},
     "rms_norm_eps: expected a number from 1e-30 to 1.0, found -1e-05"},
    {{{"rms_norm_eps", "\"1e-5\""}},
     "rms_norm_eps: expected a number from 1e-30 to 1.0, found \"1e-5\""},
    {{{"hidden_size", "16777216"},
      {"head_dim", "2"},
      {"intermediate_size", "16777216"},
      {"num_hidden_layers", "16777216"}},
     "num_hidden_layers: these sizes make more than 2^48 weights"},
    {{{"hidden_size", "16777216"}, {"head_dim", "2"}, {"vocab_size", "16777216"}},
     "num_hidden_layers: these sizes make more than 2^48 weights"},
};

TEST(MalformedConfig, IsRefusedForItsSizes) {
  for (const Refused& row : kSizes) check_malformed_config(row);
}

const std::vector<Refused> kHeads = {
    {{{"num_key_value_heads", "3"}},
     "num_key_value_heads: 3 does not divide num_attention_heads 4"},
    {{{"num_key_value_heads", "8"}},
     "num_key_value_heads: 8 does not divide num_attention_heads 4"},
    {{{"num_key_value_heads", "0"}},
     "num_key_value_heads: expected an integer from 1 to 16777216, found 0"},
    {{{"hidden_size", "66"}},
     "hidden_size: 66 is not a multiple of num_attention_heads 4, and there is no head_dim"},
    {{{"hidden_size", "60"}}, "head_dim: 15 is odd; rotary positions need pairs"},
    {{{"head_dim", "7"}}, "head_dim: 7 is odd; rotary positions need pairs"},
    {{{"head_dim", "1"}}, "head_dim: expected an integer from 2 to 16777216, found 1"},
    {{{"head_dim", "8388608"}}, "head_dim: 4 heads of 8388608 are more than 16777216 columns"},
    {{{"architectures", R"(["MistralForCausalLM"])"}, {"model_type", R"("mistral")"}},
     "num_key_value_heads: required, but absent"},
};

TEST(MalformedConfig, IsRefusedForItsHeads) {
  for (const Refused& row : kHeads) check_malformed_config(row);
}

const std::vector<Refused> kNames = {
    {{{"architectures", ""}}, "architectures: required, but absent"},
    {{{"architectures", "null"}}, "architectures: required, but absent"},
    {{{"architectures", "\"LlamaForCausalLM\""}}, "architectures: expected a list of one name"},
    {{{"architectures", "[]"}}, "architectures: expected a list of one name"},
    {{{"architectures", "[1]"}}, "architectures: expected a list of one name"},
    {{{"architectures", R"(["LlamaForCausalLM","X"])"}},
     "architectures: expected a list of one name"},
    {{{"model_type", "\"mistral\""}},
     "model_type: expected \"llama\" for LlamaForCausalLM, found \"mistral\""},
    {{{"model_type", "3"}}, "model_type: expected a string, found 3"},
    {{{"hidden_act", "[]"}}, "hidden_act: expected a string, found an array"},
    {{{"tie_word_embeddings", "1"}}, "tie_word_embeddings: expected true or false, found 1"},
    {{{"attention_bias", "\"no\""}}, "attention_bias: expected true or false, found \"no\""},
};

TEST(MalformedConfig, IsRefusedForItsNamesAndSwitches) {
  for (const Refused& row : kNames) check_malformed_config(row);
}

const std::vector<Refused> kPositions = {
    {{{"rope_theta", "0"}}, "rope_theta: expected a number from 1.0 to 1e+15, found 0"},
    {{{"rope_theta", "\"big\""}}, "rope_theta: expected a number from 1.0 to 1e+15, found \"big\""},
    {{{"rope_scaling", "2.0"}}, "rope_scaling: expected an object, found 2.0"},
    {{{"rope_scaling", "{}"}}, "rope_scaling.rope_type: required, but absent"},
    {{{"rope_scaling", R"({"factor":2.0})"}}, "rope_scaling.rope_type: required, but absent"},
    {{{"rope_scaling", R"({"type":"linear"})"}}, "rope_scaling.factor: required, but absent"},
    {{{"rope_scaling", R"({"type":"linear","factor":0.5})"}},
     "rope_scaling.factor: expected a number from 1.0 to 1e+06, found 0.5"},
    {{{"rope_scaling", R"({"type":"linear","rope_type":"llama3","factor":2})"}},
     "rope_scaling.type: \"linear\" contradicts rope_type \"llama3\""},
    {{{"rope_scaling", R"({"rope_type":5})"}},
     "rope_scaling.rope_type: expected a string, found 5"},
    {{{"rope_parameters", R"({"rope_type":"llama3","factor":8})"}},
     "rope_parameters.low_freq_factor: required, but absent"},
    {{{"rope_parameters",
       R"({"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":4,)"
       R"("original_max_position_embeddings":8192})"}},
     "rope_parameters.high_freq_factor: must be larger than low_freq_factor"},
    {{{"rope_parameters",
       R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,)"
       R"("original_max_position_embeddings":0})"}},
     "rope_parameters.original_max_position_embeddings: expected an integer from 1 to "
     "16777216, found 0"},
    {{{"rope_parameters", R"({"rope_theta":1e6})"}, {"rope_theta", "1e5"}},
     "rope_parameters.rope_theta: contradicts the rope_theta outside"},
    {{{"rope_parameters", "{}"}, {"rope_scaling", R"({"type":"default"})"}},
     "rope_parameters: written together with rope_scaling; keep one of them"},
};

TEST(MalformedConfig, IsRefusedForItsPositions) {
  for (const Refused& row : kPositions) check_malformed_config(row);
}

const std::vector<Refused> kTokens = {
    {{{"bos_token_id", "100"}}, "bos_token_id: expected an integer from 0 to 99, found 100"},
    {{{"bos_token_id", "[1]"}}, "bos_token_id: expected an integer from 0 to 99, found an array"},
    {{{"eos_token_id", "-1"}}, "eos_token_id: expected an id from 0 to 99, found -1"},
    {{{"eos_token_id", "100"}}, "eos_token_id: expected an id from 0 to 99, found 100"},
    {{{"eos_token_id", "[1,\"2\"]"}}, "eos_token_id: expected an id from 0 to 99, found \"2\""},
    {{{"eos_token_id", "{}"}}, "eos_token_id: expected an id from 0 to 99, found an object"},
    {{{"layer_types", R"(["full_attention"])"}}, "layer_types: expected a list of 2 names"},
    {{{"layer_types", "\"full_attention\""}}, "layer_types: expected a list of 2 names"},
};

TEST(MalformedConfig, IsRefusedForItsTokens) {
  for (const Refused& row : kTokens) check_malformed_config(row);
}

void check_unsupported_config(const Refused& row) {
  expect_refused(row, Code::unsupported);
}

const ConfigChanges kMistral = {{"architectures", R"(["MistralForCausalLM"])"},
                                {"model_type", R"("mistral")"},
                                {"num_key_value_heads", "2"}};
const ConfigChanges kQwen2 = {{"architectures", R"(["Qwen2ForCausalLM"])"},
                              {"model_type", R"("qwen2")"},
                              {"num_key_value_heads", "2"}};

const ConfigChanges kGemma2 = {{"architectures", R"(["Gemma2ForCausalLM"])"},
                               {"model_type", R"("gemma2")"},
                               {"num_key_value_heads", "2"}};
const ConfigChanges kGemma3 = {{"architectures", R"(["Gemma3ForCausalLM"])"},
                               {"model_type", R"("gemma3_text")"},
                               {"num_key_value_heads", "2"}};
const ConfigChanges kPhi3 = {{"architectures", R"(["Phi3ForCausalLM"])"},
                             {"model_type", R"("phi3")"}};
const ConfigChanges kSmolLm3 = {{"architectures", R"(["SmolLM3ForCausalLM"])"},
                                {"model_type", R"("smollm3")"},
                                {"num_key_value_heads", "2"}};
const ConfigChanges kBitNet = {{"architectures", R"(["BitNetForCausalLM"])"},
                               {"model_type", R"("bitnet")"},
                               {"num_key_value_heads", "2"}};

ConfigChanges with(ConfigChanges base, const ConfigChanges& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

std::string known_classes() {
  std::vector<std::string> names;
  for (const DecoderFamily* family : decoder_families()) names.emplace_back(family->hf_class);
  return join(names, ", ");
}

const std::vector<Refused> kFields = {
    {{{"architectures", R"(["BloomForCausalLM"])"}},
     "architectures: \"BloomForCausalLM\" is not supported; these are: " + known_classes()},
    {{{"hidden_act", "\"swish\""}},
     "hidden_act: \"swish\" is not supported; these are: silu, gelu, gelu_new, "
     "gelu_pytorch_tanh, relu, relu2"},
    {{{"hidden_act", "\"\""}},
     "hidden_act: \"\" is not supported; these are: silu, gelu, gelu_new, "
     "gelu_pytorch_tanh, relu, relu2"},
    {{{"partial_rotary_factor", "0.5"}}, "partial_rotary_factor: 0.5 is not supported; only 1 is"},
    {{{"quantization_config", R"({"quant_method":"gptq"})"}},
     "quantization_config: quantized checkpoints other than those of bitnet are not supported; "
     "load the original one"},
    {{{"compression_config", "{}"}},
     "compression_config: quantized checkpoints are not supported; load the original "
     "one"},
    {{{"is_encoder_decoder", "true"}}, "is_encoder_decoder: true is not supported"},
    {{{"add_cross_attention", "true"}}, "add_cross_attention: true is not supported"},
    {{{"layer_types", R"(["full_attention","sliding_attention"])"}},
     "layer_types: \"sliding_attention\" is not supported"},
};

TEST(UnsupportedConfig, IsRefusedForWhatItAsks) {
  for (const Refused& row : kFields) check_unsupported_config(row);
}

const std::vector<Refused> kFixedByTheArchitecture = {
    {with(kMistral, {{"sliding_window", "null"}, {"attention_bias", "true"}}),
     "attention_bias: MistralForCausalLM always has false"},
    {with(kMistral, {{"sliding_window", "null"}, {"mlp_bias", "true"}}),
     "mlp_bias: MistralForCausalLM always has false"},
    {with(kQwen2, {{"attention_bias", "false"}}),
     "attention_bias: Qwen2ForCausalLM always has true"},
};

TEST(UnsupportedConfig, IsRefusedForContradictingItsArchitecture) {
  for (const Refused& row : kFixedByTheArchitecture) check_unsupported_config(row);
}

const std::vector<Refused> kPositionsUnsupported = {
    {{{"rope_scaling", R"({"rope_type":"axial","factor":4.0,"beta_fast":32})"}},
     "rope_scaling.rope_type: \"axial\" is not supported; default, linear, llama3, yarn, dynamic "
     "and longrope are"},
    {{{"rope_scaling", R"({"type":"su","long_factor":[1]})"}},
     "rope_scaling.type: \"su\" is not supported; default, linear, llama3, yarn, dynamic and "
     "longrope are"},
    {{{"rope_parameters", R"({"rope_type":"default","mrope_parts":[1,2]})"}},
     "rope_parameters.mrope_parts: unknown field"},
    {{{"rope_parameters", R"({"full_attention":{"rope_type":"default"}})"}},
     "rope_parameters.full_attention: unknown field"},
    {{{"rope_parameters", R"({"partial_rotary_factor":0.25})"}},
     "rope_parameters.partial_rotary_factor: 0.25 is not supported; only 1 is"},
    {with(kPhi3, {{"rope_scaling", R"({"type":"ntk","long_factor":[1],"short_factor":[1]})"}}),
     "rope_scaling.type: \"ntk\" is not supported; default, linear, llama3, yarn, dynamic and "
     "longrope are"},
    {with(kGemma3, {{"rope_parameters", R"({"rope_type":"default"})"}}),
     "rope_parameters.rope_type: unknown field"},
    {with(kGemma3,
          {{"rope_parameters", R"({"sliding_attention":{"rope_type":"linear","factor":2}})"}}),
     "rope_parameters.sliding_attention.rope_type: only default is supported for sliding layers"},
};

TEST(UnsupportedConfig, IsRefusedForItsPositions) {
  for (const Refused& row : kPositionsUnsupported) check_unsupported_config(row);
}

// The fields that only some architectures have.
const std::vector<Refused> kOfOneArchitecture = {
    {with(kMistral, {{"sliding_window", "0"}}),
     "sliding_window: expected an integer from 1 to 1099511627776, found 0"},
    {with(kMistral, {{"sliding_window", "\"8\""}}),
     "sliding_window: expected an integer from 1 to 1099511627776, found \"8\""},
    {with(kMistral, {{"sliding_window", "4"}, {"num_hidden_layers", "4097"}}),
     "num_hidden_layers: 4097 layers of different kinds; 4096 are supported"},
    {with(kQwen2, {{"use_sliding_window", "1"}}),
     "use_sliding_window: expected true or false, found 1"},
    {with(kQwen2, {{"use_sliding_window", "true"}, {"max_window_layers", "-1"}}),
     "max_window_layers: expected an integer from 0 to 1099511627776, found -1"},
    {with(kQwen2, {{"layer_types", R"(["full_attention","sliding_attention"])"}}),
     "layer_types: \"sliding_attention\", but there is no sliding_window"},
    {with(kGemma2, {{"sliding_window", "null"}}), "sliding_window: required, but absent"},
    {with(kGemma2, {{"query_pre_attn_scalar", "0"}}),
     "query_pre_attn_scalar: expected a number from 0.001 to 1e+06, found 0"},
    {with(kGemma2, {{"attn_logit_softcapping", "-50"}}),
     "attn_logit_softcapping: expected a number from 0.001 to 1e+06, found -50"},
    {with(kGemma2, {{"final_logit_softcapping", "[30]"}}),
     "final_logit_softcapping: expected a number from 0.001 to 1e+06, found an array"},
    {with(kMistral,
          {{"sliding_window", "5"}, {"layer_types", R"(["full_attention","full_attention"])"}}),
     "layer_types: \"full_attention\", but there is a sliding_window"},
    {with(kGemma2, {{"layer_types", R"(["full_attention"])"}}),
     "layer_types: expected a list of 2 names"},
    {with(kGemma3, {{"sliding_window_pattern", "0"}}),
     "sliding_window_pattern: expected an integer from 1 to 1099511627776, found 0"},
    {with(kGemma3, {{"rope_local_base_freq", "0.5"}}),
     "rope_local_base_freq: expected a number from 1.0 to 1e+15, found 0.5"},
    {with(kGemma3, {{"rope_parameters", R"({"full_attention":3})"}}),
     "rope_parameters.full_attention: expected an object, found 3"},
    {with(kGemma3, {{"rope_parameters", R"({"sliding_attention":{"rope_theta":"x"}})"}}),
     "rope_parameters.sliding_attention.rope_theta: expected a number from 1.0 to 1e+15, found "
     "\"x\""},
    {with(kPhi3, {{"partial_rotary_factor", "1.5"}}),
     "partial_rotary_factor: 1.5 of head_dim 16 is not an even number from 2 to all of it"},
    {with(kPhi3, {{"rope_parameters", R"({"partial_rotary_factor":0.2})"}}),
     "rope_parameters.partial_rotary_factor: 0.2 of head_dim 16 is not an even number from 2 to "
     "all of "
     "it"},
    {with(kSmolLm3, {{"no_rope_layers", "[1]"}}), "no_rope_layers: expected a list of 2 numbers"},
    {with(kSmolLm3, {{"no_rope_layers", "[1,2]"}}),
     "no_rope_layers: expected 0 or 1 for each layer, found 2"},
    {with(kSmolLm3, {{"no_rope_layers", "[1,true]"}}),
     "no_rope_layers: expected 0 or 1 for each layer, found true"},
    {with(kSmolLm3, {{"no_rope_layer_interval", "0"}}),
     "no_rope_layer_interval: expected an integer from 1 to 16777216, found 0"},
    {with(kSmolLm3, {{"num_hidden_layers", "5000"}}),
     "num_hidden_layers: 5000 layers of different kinds; 4096 are supported"},
    {with(kBitNet, {{"head_dim", "8"}}),
     "hidden_size: 4 heads of 8 do not make 64, which the norm after attention needs"},
    {with(kBitNet, {{"quantization_config", "true"}}),
     "quantization_config: expected an object, found true"},
    {with(kBitNet, {{"quantization_config", R"({"quant_method":"bitnet","linear_class":"x"})"}}),
     "quantization_config.linear_class: expected \"bitlinear\" or \"autobitlinear\""},
    {with(kBitNet,
          {{"quantization_config", R"({"quant_method":"bitnet","quantization_mode":"both"})"}}),
     "quantization_config.quantization_mode: expected \"online\" or \"offline\""},
    {with(kBitNet, {{"quantization_config", R"({"quant_method":7})"}}),
     "quantization_config.quant_method: expected a string, found 7"},
};

TEST(MalformedConfig, IsRefusedForFieldsOfOneArchitecture) {
  for (const Refused& row : kOfOneArchitecture) check_malformed_config(row);
}

const std::vector<Refused> kUnsupportedOfOne = {
    {with(kGemma2, {{"use_bidirectional_attention", "true"}}),
     "use_bidirectional_attention: true is not supported"},
    {with(kGemma2, {{"layer_types", R"(["full_attention","chunked_attention"])"}}),
     "layer_types: \"chunked_attention\" is not supported"},
    {with(kGemma2, {{"mlp_bias", "true"}}), "mlp_bias: Gemma2ForCausalLM always has false"},
    {with(kGemma3, {{"attn_logit_softcapping", "50"}}),
     "attn_logit_softcapping: Gemma3ForCausalLM has none"},
    {with(kPhi3, {{"attention_bias", "true"}}), "attention_bias: Phi3ForCausalLM always has false"},
    {with(kBitNet, {{"quantization_config", R"({"quant_method":"bitnet","use_rms_norm":true})"}}),
     "quantization_config.use_rms_norm: true is not supported"},
    {with(kBitNet,
          {{"quantization_config", R"({"quant_method":"bitnet","modules_to_not_convert":[]})"}}),
     "quantization_config.modules_to_not_convert: only [\"lm_head\"] is supported"},
    {with(kBitNet, {{"hidden_act", "\"swiglu\""}}),
     "hidden_act: \"swiglu\" is not supported; these are: silu, gelu, gelu_new, "
     "gelu_pytorch_tanh, relu, relu2"},
    {with(kGemma2, {{"hidden_activation", "\"x\""}}),
     "hidden_activation: \"x\" is not supported; these are: silu, gelu, gelu_new, "
     "gelu_pytorch_tanh, relu, relu2"},
};

TEST(UnsupportedConfig, IsRefusedForFieldsOfOneArchitecture) {
  for (const Refused& row : kUnsupportedOfOne) check_unsupported_config(row);
}

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
}  // namespace loom::core
