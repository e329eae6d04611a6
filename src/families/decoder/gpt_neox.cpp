// GPT-NeoX and Pythia.
// Sources: configuration_gpt_neox.py and modeling_gpt_neox.py of transformers 5.23.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kGptNeoxKeys = {
    .eps = "layer_norm_eps", .rope_theta = "rotary_emb_base", .rotary_part = "rotary_pct"};
constexpr FixedSetting kGptNeoxFixed[] = {{"attention_bias", true}};
constexpr PartName kGptNeoxNames[] = {
    {DecoderRole::token_embedding, "gpt_neox.embed_in"},
    {DecoderRole::output_norm, "gpt_neox.final_layer_norm"},
    {DecoderRole::head, "embed_out"},
    {DecoderRole::q, "attention.query_key_value"},
    {DecoderRole::k, "attention.query_key_value"},
    {DecoderRole::v, "attention.query_key_value"},
    {DecoderRole::o, "attention.dense"},
    {DecoderRole::mlp_norm, "post_attention_layernorm"},
    {DecoderRole::up, "mlp.dense_h_to_4h"},
    {DecoderRole::down, "mlp.dense_4h_to_h"},
};

extern const DecoderFamily kGptNeoxFamily;
constexpr DecoderFamily kGptNeoxFamily = {.hf_class = "GPTNeoXForCausalLM",
                                          .model_type = "gpt_neox",
                                          .config = {.bias = kAllBiases,
                                                     .layer_norms = true,
                                                     .gated = false,
                                                     .residual = ResidualKind::parallel,
                                                     .parallel_key = "use_parallel_residual",
                                                     .keys = &kGptNeoxKeys,
                                                     .fixed = kGptNeoxFixed,
                                                     .plain_heads = true,
                                                     .rms_norm_eps = 1e-5,
                                                     .partial_rotary = true,
                                                     .rotary_part = 0.25,
                                                     .act = "gelu",
                                                     .bos_token_id = 0,
                                                     .eos_token_id = 2},
                                          .folder = {.names = kGptNeoxNames,
                                                     .block = "gpt_neox.layers.",
                                                     .optional_prefix = true,
                                                     .other_head = "lm_head",  // the current name
                                                     .by_group = true}};

}  // namespace loom::core
