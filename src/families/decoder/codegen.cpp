// CodeGen.
// Sources: configuration_codegen.py and modeling_codegen.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kCodegenKeys = {.hidden = "n_embd",
                                     .inner = "n_inner",
                                     .layers = "n_layer",
                                     .heads = "n_head",
                                     .positions = "n_positions",
                                     .eps = "layer_norm_epsilon",
                                     .rotary_width = "rotary_dim"};
constexpr PartName kCodegenNames[] = {
    {DecoderRole::token_embedding, "transformer.wte"},
    {DecoderRole::output_norm, "transformer.ln_f"},
    {DecoderRole::attention_norm, "ln_1"},
    {DecoderRole::q, "attn.qkv_proj"},
    {DecoderRole::k, "attn.qkv_proj"},
    {DecoderRole::v, "attn.qkv_proj"},
    {DecoderRole::o, "attn.out_proj"},
    {DecoderRole::up, "mlp.fc_in"},
    {DecoderRole::down, "mlp.fc_out"},
};

extern const DecoderFamily kCodegenFamily;
constexpr DecoderFamily kCodegenFamily = {.hf_class = "CodeGenForCausalLM",
                                          .model_type = "codegen",
                                          .config = {.bias = kMlpBiases,
                                                     .head_bias = true,
                                                     .layer_norms = true,
                                                     .gated = false,
                                                     .residual = ResidualKind::shared_norm,
                                                     .keys = &kCodegenKeys,
                                                     .plain_heads = true,
                                                     .inner_default = true,
                                                     .rms_norm_eps = 1e-5,
                                                     .act_key = "activation_function",
                                                     .act = "gelu_new",
                                                     .bos_token_id = 50256,
                                                     .eos_token_id = 50256},
                                          .folder = {.names = kCodegenNames,
                                                     .block = "transformer.h.",
                                                     .optional_prefix = true,
                                                     .shards = 4,
                                                     .pairs_rows = true}};

}  // namespace loom::core
