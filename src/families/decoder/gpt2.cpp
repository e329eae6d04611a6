// GPT-2.
// Sources: configuration_gpt2.py and modeling_gpt2.py of transformers 5.23;
// the graph gpt2 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kGpt2Keys = {.hidden = "n_embd",
                                  .inner = "n_inner",
                                  .layers = "n_layer",
                                  .heads = "n_head",
                                  .positions = "n_positions",
                                  .eps = "layer_norm_epsilon"};
constexpr FixedSetting kGpt2Fixed[] = {{"scale_attn_weights", true},
                                       {"scale_attn_by_inverse_layer_idx", false}};
constexpr PartName kGpt2Names[] = {
    {DecoderRole::token_embedding, "transformer.wte"},
    {DecoderRole::positions, "transformer.wpe"},
    {DecoderRole::output_norm, "transformer.ln_f"},
    {DecoderRole::attention_norm, "ln_1"},
    {DecoderRole::q, "attn.c_attn"},
    {DecoderRole::k, "attn.c_attn"},
    {DecoderRole::v, "attn.c_attn"},
    {DecoderRole::o, "attn.c_proj"},
    {DecoderRole::mlp_norm, "ln_2"},
    {DecoderRole::up, "mlp.c_fc"},
    {DecoderRole::down, "mlp.c_proj"},
};

extern const DecoderFamily kGpt2Family;
constexpr DecoderFamily kGpt2Family = {
    .hf_class = "GPT2LMHeadModel",
    .model_type = "gpt2",
    .config = {.bias = kAllBiases,
               .layer_norms = true,
               .gated = false,
               .keys = &kGpt2Keys,
               .fixed = kGpt2Fixed,
               .plain_heads = true,
               .inner_default = true,
               .max_positions = 1024,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .learned_positions = true,
               .act_key = "activation_function",
               .act = "gelu_new",
               .bos_token_id = 50256,
               .eos_token_id = 50256},
    .folder = {.names = kGpt2Names,
               .block = "transformer.h.",
               .optional_prefix = true,
               .transposed = true},
    .gguf = {.name = "gpt2", .bias = false, .fused = true, .layer_norms = true, .square = true}};

}  // namespace loom::core
