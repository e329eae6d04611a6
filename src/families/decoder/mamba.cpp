// Mamba.
// Sources: configuration_mamba.py and modeling_mamba.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kMambaNames[] = {
    {DecoderRole::token_embedding, "backbone.embeddings"},
    {DecoderRole::output_norm, "backbone.norm_f"},
    {DecoderRole::attention_norm, "norm"},
};
constexpr ConfigKeys kMambaKeys = {
    .inner = {}, .heads = {}, .kv_heads = {}, .positions = {}, .eps = "layer_norm_epsilon"};
constexpr MixerRules kMambaMixers = {.mlp = false};

extern const DecoderFamily kMambaFamily;
constexpr DecoderFamily kMambaFamily = {
    .hf_class = "MambaForCausalLM",
    .model_type = "mamba",
    .config = {.bias = kNoBiases,
               .keys = &kMambaKeys,
               .max_positions = 1 << 20,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .bos_token_id = 0,
               .eos_token_id = 0},
    .folder = {.names = kMambaNames, .block = "backbone.layers."},
    .mixers = &kMambaMixers};

}  // namespace loom::core
