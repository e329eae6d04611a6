// StarCoder2.
// Sources: configuration_starcoder2.py and modeling_starcoder2.py of transformers 5.23;
// the graph starcoder2 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kStarcoder2Keys = {.eps = "norm_epsilon"};
constexpr FixedSetting kStarcoder2Fixed[] = {{"use_bias", true}};
constexpr PartName kStarcoder2Names[] = {
    {DecoderRole::mlp_norm, "post_attention_layernorm"},
    {DecoderRole::up, "mlp.c_fc"},
    {DecoderRole::down, "mlp.c_proj"},
};

extern const DecoderFamily kStarcoder2Family;
constexpr DecoderFamily kStarcoder2Family = {
    .hf_class = "Starcoder2ForCausalLM",
    .model_type = "starcoder2",
    .config = {.bias = kAllBiases,
               .layer_norms = true,
               .gated = false,
               .keys = &kStarcoder2Keys,
               .fixed = kStarcoder2Fixed,
               .kv_heads_default = false,
               .max_positions = 4096,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .sliding = ConfigRules::Sliding::every,
               .act = "gelu_pytorch_tanh",
               .bos_token_id = 50256,
               .eos_token_id = 50256},
    .folder = {.names = kStarcoder2Names, .optional_prefix = true},
    .gguf = {.name = "starcoder2", .bias = false, .layer_norms = true, .square = true}};

}  // namespace loom::core
