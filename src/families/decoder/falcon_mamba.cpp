// FalconMamba.
// Sources: configuration_falcon_mamba.py and modeling_falcon_mamba.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kFalconMambaNames[] = {
    {DecoderRole::token_embedding, "backbone.embeddings"},
    {DecoderRole::output_norm, "backbone.norm_f"},
    {DecoderRole::attention_norm, "norm"},
};
constexpr ConfigKeys kFalconMambaKeys = {
    .inner = {}, .heads = {}, .kv_heads = {}, .positions = {}, .eps = "layer_norm_epsilon"};
constexpr MixerRules kFalconMambaMixers = {
    .step_norm_eps = "mixer_rms_eps", .mlp = false, .step_norm = "plain"};

extern const DecoderFamily kFalconMambaFamily;
constexpr DecoderFamily kFalconMambaFamily = {
    .hf_class = "FalconMambaForCausalLM",
    .model_type = "falcon_mamba",
    .config = {.bias = kNoBiases,
               .keys = &kFalconMambaKeys,
               .max_positions = 1 << 20,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .bos_token_id = 0,
               .eos_token_id = 0},
    .folder = {.names = kFalconMambaNames, .block = "backbone.layers."},
    .mixers = &kFalconMambaMixers};

}  // namespace loom::core
