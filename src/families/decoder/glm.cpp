// GLM-4 of 2024 and GLM-Edge.
// Sources: configuration_glm.py and modeling_glm.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kGlmNames[] = {
    {DecoderRole::gate, "mlp.gate_up_proj"},
    {DecoderRole::up, "mlp.gate_up_proj"},
};

extern const DecoderFamily kGlmFamily;
constexpr DecoderFamily kGlmFamily = {
    .hf_class = "GlmForCausalLM",
    .model_type = "glm",
    .config = {.bias = {.qkv = {"attention_bias", true}, .out = {}},
               .kv_heads_default = false,
               .head_dim = 128,
               .max_positions = 131072,
               .rms_norm_eps = 1.5625e-7,
               .partial_rotary = true,
               .rotary_part = 0.5,
               .eos_token_id = 151329,
               .pad_token_id = 151329},
    .folder = {.names = kGlmNames, .pairs_rows = true}};

}  // namespace loom::core
