// Bamba: scans of Mamba-2, and attention in some blocks.
// Sources: configuration_bamba.py and modeling_bamba.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kBambaNames[] = {
    {DecoderRole::output_norm, "model.final_layernorm"},
    {DecoderRole::mlp_norm, "pre_ff_layernorm"},
    {DecoderRole::gate, "feed_forward.gate_proj"},
    {DecoderRole::up, "feed_forward.up_proj"},
    {DecoderRole::down, "feed_forward.down_proj"},
    {DecoderRole::mixer_in, "mamba.in_proj"},
    {DecoderRole::mixer_conv, "mamba.conv1d"},
    {DecoderRole::mixer_step_bias, "mamba.dt_bias", true},
    {DecoderRole::mixer_rates, "mamba.A_log", true},
    {DecoderRole::mixer_through, "mamba.D", true},
    {DecoderRole::mixer_norm, "mamba.norm"},
    {DecoderRole::mixer_out, "mamba.out_proj"},
};
constexpr MixerRules kBambaMixers = {.expand = "mamba_expand",
                                     .state = "mamba_d_state",
                                     .kernel = "mamba_d_conv",
                                     .heads = "mamba_n_heads",
                                     .head_dim = "mamba_d_head",
                                     .groups = "mamba_n_groups",
                                     .bias = "mamba_proj_bias",
                                     .conv_bias = "mamba_conv_bias",
                                     .attention = "attn_layer_indices",
                                     .state_default = 256,
                                     .heads_default = 128,
                                     .head_dim_default = 0,
                                     .norm = "gated"};

extern const DecoderFamily kBambaFamily;
constexpr DecoderFamily kBambaFamily = {.hf_class = "BambaForCausalLM",
                                        .model_type = "bamba",
                                        .config = {.bias = kBothBiases,
                                                   .kv_heads_default = false,
                                                   .max_positions = 262144,
                                                   .rms_norm_eps = 1e-5,
                                                   .partial_rotary = true,
                                                   .rotary_part = 0.5,
                                                   .bos_token_id = 1,
                                                   .eos_token_id = 2},
                                        .folder = {.names = kBambaNames},
                                        .mixers = &kBambaMixers};

}  // namespace loom::core
