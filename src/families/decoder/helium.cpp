// Helium.
// Sources: configuration_helium.py and modeling_helium.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kHeliumFamily;
constexpr DecoderFamily kHeliumFamily = {
    .hf_class = "HeliumForCausalLM",
    .model_type = "helium",
    .config = {.bias = {.qkv = {"attention_bias"}, .out = {}, .mlp = {"mlp_bias"}},
               .square = true,
               .kv_heads_default = false,
               .head_dim = 128,
               .max_positions = 4096,
               .rms_norm_eps = 1e-8,
               .rope_theta = 1e5,
               .bos_token_id = 1,
               .eos_token_id = 2,
               .pad_token_id = 3},
    .folder = {.pairs_rows = true}};

}  // namespace loom::core
