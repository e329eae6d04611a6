// GPT-BigCode: SantaCoder and StarCoder.
// Sources: configuration_gpt_bigcode.py and modeling_gpt_bigcode.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kGptBigcodeKeys = {.hidden = "n_embd",
                                        .inner = "n_inner",
                                        .layers = "n_layer",
                                        .heads = "n_head",
                                        .positions = "n_positions",
                                        .eps = "layer_norm_epsilon"};
constexpr FixedSetting kGptBigcodeFixed[] = {{"scale_attn_weights", true}};
constexpr PartName kGptBigcodeNames[] = {
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

extern const DecoderFamily kGptBigcodeFamily;
constexpr DecoderFamily kGptBigcodeFamily = {.hf_class = "GPTBigCodeForCausalLM",
                                             .model_type = "gpt_bigcode",
                                             .config = {.bias = kAllBiases,
                                                        .layer_norms = true,
                                                        .gated = false,
                                                        .keys = &kGptBigcodeKeys,
                                                        .fixed = kGptBigcodeFixed,
                                                        .plain_heads = true,
                                                        .multi_query_key = "multi_query",
                                                        .inner_default = true,
                                                        .max_positions = 1024,
                                                        .rms_norm_eps = 1e-5,
                                                        .tied = true,
                                                        .learned_positions = true,
                                                        .act_key = "activation_function",
                                                        .act = "gelu_pytorch_tanh",
                                                        .bos_token_id = 50256,
                                                        .eos_token_id = 50256},
                                             .folder = {.names = kGptBigcodeNames,
                                                        .block = "transformer.h.",
                                                        .optional_prefix = true,
                                                        .by_group = true}};

}  // namespace loom::core
