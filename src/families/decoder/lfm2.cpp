// LFM2: gated convolutions, and attention in some blocks.
// Sources: configuration_lfm2.py and modeling_lfm2.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kLfm2Names[] = {
    {DecoderRole::output_norm, "model.embedding_norm"},
    {DecoderRole::attention_norm, "operator_norm"},
    {DecoderRole::mlp_norm, "ffn_norm"},
    {DecoderRole::o, "self_attn.out_proj"},
    {DecoderRole::q_norm, "self_attn.q_layernorm"},
    {DecoderRole::k_norm, "self_attn.k_layernorm"},
    {DecoderRole::gate, "feed_forward.w1"},
    {DecoderRole::up, "feed_forward.w3"},
    {DecoderRole::down, "feed_forward.w2"},
    {DecoderRole::mixer_in, "conv.in_proj"},
    {DecoderRole::mixer_conv, "conv.conv"},
    {DecoderRole::mixer_out, "conv.out_proj"},
};
constexpr ConfigKeys kLfm2Keys = {.eps = "norm_eps"};
constexpr MixerRules kLfm2Mixers = {.kernel = "conv_L_cache",
                                    .conv_bias = "conv_bias",
                                    .types = "layer_types",
                                    .attention = "full_attn_idxs",
                                    .type = "conv",
                                    .kernel_default = 3,
                                    .conv = true};

extern const DecoderFamily kLfm2Family;
constexpr DecoderFamily kLfm2Family = {.hf_class = "Lfm2ForCausalLM",
                                       .model_type = "lfm2",
                                       .config = {.bias = kNoBiases,
                                                  .qk_norm = true,
                                                  .keys = &kLfm2Keys,
                                                  .kv_heads_default = false,
                                                  .inner_rounded = true,
                                                  .max_positions = 128000,
                                                  .rms_norm_eps = 1e-5,
                                                  .tied = true,
                                                  .rope_theta = 1e6,
                                                  .bos_token_id = 1,
                                                  .eos_token_id = 2},
                                       .folder = {.names = kLfm2Names},
                                       .mixers = &kLfm2Mixers};

}  // namespace loom::core
