// OPT.
// Sources: configuration_opt.py and modeling_opt.py of transformers 5.23.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kOptKeys = {
    .inner = "ffn_dim", .eps = "", .table_width = "word_embed_proj_dim"};
constexpr FixedSetting kOptFixed[] = {{"do_layer_norm_before", true},
                                      {"enable_bias", true},
                                      {"layer_norm_elementwise_affine", true},
                                      {"_remove_final_layer_norm", false}};
constexpr PartName kOptNames[] = {
    {DecoderRole::token_embedding, "model.decoder.embed_tokens"},
    {DecoderRole::positions, "model.decoder.embed_positions"},
    {DecoderRole::output_norm, "model.decoder.final_layer_norm"},
    {DecoderRole::attention_norm, "self_attn_layer_norm"},
    {DecoderRole::o, "self_attn.out_proj"},
    {DecoderRole::mlp_norm, "final_layer_norm"},
    {DecoderRole::up, "fc1"},
    {DecoderRole::down, "fc2"},
};

extern const DecoderFamily kOptFamily;
constexpr DecoderFamily kOptFamily = {.hf_class = "OPTForCausalLM",
                                      .model_type = "opt",
                                      .config = {.bias = kAllBiases,
                                                 .layer_norms = true,
                                                 .gated = false,
                                                 .keys = &kOptKeys,
                                                 .fixed = kOptFixed,
                                                 .plain_heads = true,
                                                 .rms_norm_eps = 1e-5,
                                                 .tied = true,
                                                 .learned_positions = true,
                                                 .act_key = "activation_function",
                                                 .act = "relu",
                                                 .bos_token_id = 2,
                                                 .eos_token_id = 2},
                                      .folder = {.names = kOptNames,
                                                 .block = "model.decoder.layers.",
                                                 .optional_prefix = true,
                                                 .unused_positions = 2}};

}  // namespace loom::core
