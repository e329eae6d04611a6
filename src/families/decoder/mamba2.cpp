// Mamba-2.
// Sources: configuration_mamba2.py and modeling_mamba2.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kMamba2Names[] = {
    {DecoderRole::token_embedding, "backbone.embeddings"},
    {DecoderRole::output_norm, "backbone.norm_f"},
    {DecoderRole::attention_norm, "norm"},
};
constexpr ConfigKeys kMamba2Keys = {
    .inner = {}, .heads = {}, .kv_heads = {}, .positions = {}, .eps = "layer_norm_epsilon"};
constexpr MixerRules kMamba2Mixers = {.heads = "num_heads",
                                      .head_dim = "head_dim",
                                      .groups = "n_groups",
                                      .state_default = 128,
                                      .heads_default = 128,
                                      .groups_default = 8,
                                      .mlp = false,
                                      .norm = "gated"};

extern const DecoderFamily kMamba2Family;
constexpr DecoderFamily kMamba2Family = {
    .hf_class = "Mamba2ForCausalLM",
    .model_type = "mamba2",
    .config = {.bias = kNoBiases,
               .keys = &kMamba2Keys,
               .max_positions = 1 << 20,
               .rms_norm_eps = 1e-5,
               .bos_token_id = 0,
               .eos_token_id = 2,
               .pad_token_id = 1},
    .folder = {.names = kMamba2Names, .block = "backbone.layers."},
    .mixers = &kMamba2Mixers};

}  // namespace loom::core
