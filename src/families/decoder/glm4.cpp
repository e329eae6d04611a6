// GLM-4 of 2025.
// Sources: configuration_glm4.py and modeling_glm4.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kGlm4Names[] = {
    {DecoderRole::attention_post_norm, "post_self_attn_layernorm"},
    {DecoderRole::mlp_norm, "post_attention_layernorm"},
    {DecoderRole::gate, "mlp.gate_up_proj"},
    {DecoderRole::up, "mlp.gate_up_proj"},
    {DecoderRole::mlp_post_norm, "post_mlp_layernorm"},
};

extern const DecoderFamily kGlm4Family;
constexpr DecoderFamily kGlm4Family = {
    .hf_class = "Glm4ForCausalLM",
    .model_type = "glm4",
    .config = {.bias = {.qkv = {"attention_bias", true}, .out = {}},
               .post_norms = true,
               .kv_heads_default = false,
               .head_dim = 128,
               .max_positions = 131072,
               .rms_norm_eps = 1.5625e-7,
               .partial_rotary = true,
               .rotary_part = 0.5,
               .eos_token_id = 151329,
               .pad_token_id = 151329},
    .folder = {.names = kGlm4Names, .pairs_rows = true}};

}  // namespace loom::core
