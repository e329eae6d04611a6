// Persimmon.
// Sources: configuration_persimmon.py and modeling_persimmon.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kPersimmonKeys = {.eps = "layer_norm_eps"};
constexpr PartName kPersimmonNames[] = {
    {DecoderRole::output_norm, "model.final_layernorm"},
    {DecoderRole::q, "self_attn.query_key_value"},
    {DecoderRole::k, "self_attn.query_key_value"},
    {DecoderRole::v, "self_attn.query_key_value"},
    {DecoderRole::o, "self_attn.dense"},
    {DecoderRole::q_norm, "self_attn.q_layernorm"},
    {DecoderRole::k_norm, "self_attn.k_layernorm"},
    {DecoderRole::up, "mlp.dense_h_to_4h"},
    {DecoderRole::down, "mlp.dense_4h_to_h"},
};

extern const DecoderFamily kPersimmonFamily;
constexpr DecoderFamily kPersimmonFamily = {.hf_class = "PersimmonForCausalLM",
                                            .model_type = "persimmon",
                                            .config = {.bias = kAllBiases,
                                                       .layer_norms = true,
                                                       .qk_norm = true,
                                                       .qk_norm_key = "qk_layernorm",
                                                       .qk_norm_form = QkNormForm::layer_shared,
                                                       .gated = false,
                                                       .keys = &kPersimmonKeys,
                                                       .plain_heads = true,
                                                       .max_positions = 16384,
                                                       .rms_norm_eps = 1e-5,
                                                       .partial_rotary = true,
                                                       .rotary_part = 0.5,
                                                       .act = "relu2",
                                                       .bos_token_id = 1,
                                                       .eos_token_id = 2},
                                            .folder = {.names = kPersimmonNames, .by_group = true}};

}  // namespace loom::core
