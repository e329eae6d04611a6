// Falcon, of both architectures.
// Sources: configuration_falcon.py and modeling_falcon.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kFalconKeys = {
    .inner = "ffn_hidden_size", .kv_heads = "num_kv_heads", .eps = "layer_norm_epsilon"};
constexpr FixedSetting kFalconFixed[] = {{"alibi", false}};
constexpr PartName kFalconNames[] = {
    {DecoderRole::token_embedding, "transformer.word_embeddings"},
    {DecoderRole::output_norm, "transformer.ln_f"},
    {DecoderRole::q, "self_attention.query_key_value"},
    {DecoderRole::k, "self_attention.query_key_value"},
    {DecoderRole::v, "self_attention.query_key_value"},
    {DecoderRole::o, "self_attention.dense"},
    {DecoderRole::up, "mlp.dense_h_to_4h"},
    {DecoderRole::down, "mlp.dense_4h_to_h"},
};
constexpr PartName kFalconParallelNames[] = {
    {DecoderRole::attention_norm, "ln_attn"},
    {DecoderRole::mlp_norm, "ln_mlp"},
};

extern const DecoderFamily kFalconFamily;
constexpr DecoderFamily kFalconFamily = {.hf_class = "FalconForCausalLM",
                                         .model_type = "falcon",
                                         .config = {.bias = {{"bias"}, {"bias"}, {"bias"}},
                                                    .layer_norms = true,
                                                    .gated = false,
                                                    .residual = ResidualKind::shared_norm,
                                                    .parallel_key = "parallel_attn",
                                                    .grouped_key = "new_decoder_architecture",
                                                    .norms_key = "num_ln_in_parallel_attn",
                                                    .keys = &kFalconKeys,
                                                    .fixed = kFalconFixed,
                                                    .square = true,
                                                    .multi_query_key = "multi_query",
                                                    .inner_default = true,
                                                    .rms_norm_eps = 1e-5,
                                                    .tied = true,
                                                    .act_key = "activation",
                                                    .act = "gelu",
                                                    .bos_token_id = 11,
                                                    .eos_token_id = 11},
                                         .folder = {.names = kFalconNames,
                                                    .block = "transformer.h.",
                                                    .optional_prefix = true,
                                                    .by_group = true,
                                                    .parallel_names = kFalconParallelNames}};

}  // namespace loom::core
