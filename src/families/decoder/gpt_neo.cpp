// GPT-Neo and TinyStories.
// Sources: configuration_gpt_neo.py and modeling_gpt_neo.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kGptNeoKeys = {.layers = "num_layers",
                                    .heads = "num_heads",
                                    .eps = "layer_norm_epsilon",
                                    .window = "window_size"};
constexpr PartName kGptNeoNames[] = {
    {DecoderRole::token_embedding, "transformer.wte"},
    {DecoderRole::positions, "transformer.wpe"},
    {DecoderRole::output_norm, "transformer.ln_f"},
    {DecoderRole::attention_norm, "ln_1"},
    {DecoderRole::q, "attn.attention.q_proj"},
    {DecoderRole::k, "attn.attention.k_proj"},
    {DecoderRole::v, "attn.attention.v_proj"},
    {DecoderRole::o, "attn.attention.out_proj"},
    {DecoderRole::mlp_norm, "ln_2"},
    {DecoderRole::up, "mlp.c_fc"},
    {DecoderRole::down, "mlp.c_proj"},
};

extern const DecoderFamily kGptNeoFamily;
constexpr DecoderFamily kGptNeoFamily = {
    .hf_class = "GPTNeoForCausalLM",
    .model_type = "gpt_neo",
    .config = {.bias = {{}, {"", true}, {"", true}},
               .layer_norms = true,
               .gated = false,
               .keys = &kGptNeoKeys,
               .plain_heads = true,
               .inner_default = true,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .learned_positions = true,
               .sliding = ConfigRules::Sliding::runs,
               .window = 256,
               .act_key = "activation_function",
               .act = "gelu_new",
               .score_factor = {"", 1},
               .bos_token_id = 50256,
               .eos_token_id = 50256},
    .folder = {.names = kGptNeoNames, .block = "transformer.h.", .optional_prefix = true}};

}  // namespace loom::core
