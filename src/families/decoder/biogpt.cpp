// BioGPT.
// Sources: configuration_biogpt.py and modeling_biogpt.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kBiogptKeys = {.eps = ""};
constexpr PartName kBiogptNames[] = {
    {DecoderRole::token_embedding, "biogpt.embed_tokens"},
    {DecoderRole::positions, "biogpt.embed_positions"},
    {DecoderRole::output_norm, "biogpt.layer_norm"},
    {DecoderRole::head, "output_projection"},
    {DecoderRole::attention_norm, "self_attn_layer_norm"},
    {DecoderRole::o, "self_attn.out_proj"},
    {DecoderRole::mlp_norm, "final_layer_norm"},
    {DecoderRole::up, "fc1"},
    {DecoderRole::down, "fc2"},
};

extern const DecoderFamily kBiogptFamily;
constexpr DecoderFamily kBiogptFamily = {.hf_class = "BioGptForCausalLM",
                                         .model_type = "biogpt",
                                         .config = {.bias = kAllBiases,
                                                    .layer_norms = true,
                                                    .gated = false,
                                                    .keys = &kBiogptKeys,
                                                    .plain_heads = true,
                                                    .max_positions = 1024,
                                                    .rms_norm_eps = 1e-5,
                                                    .tied = true,
                                                    .scaled_embedding = true,
                                                    .scaled_embedding_key = "scale_embedding",
                                                    .learned_positions = true,
                                                    .act = "gelu",
                                                    .bos_token_id = 0,
                                                    .eos_token_id = 2,
                                                    .pad_token_id = 1},
                                         .folder = {.names = kBiogptNames,
                                                    .block = "biogpt.layers.",
                                                    .optional_prefix = true,
                                                    .unused_positions = 2}};

}  // namespace loom::core
