// ModernBERT.
// Sources: configuration_modernbert.py and modeling_modernbert.py of transformers 5.23.
#include "families/encoder_family.hpp"

namespace loom::core {

constexpr EncoderPartName kModernbertNames[] = {
    {EncoderRole::tokens, "embeddings.tok_embeddings"},
    {EncoderRole::embedding_norm, "embeddings.norm"},
    {EncoderRole::final_norm, "final_norm"},
    {EncoderRole::head, "head.dense"},
    {EncoderRole::head_norm, "head.norm"},
    {EncoderRole::q, "attn.Wqkv"},
    {EncoderRole::k, "attn.Wqkv"},
    {EncoderRole::v, "attn.Wqkv"},
    {EncoderRole::o, "attn.Wo"},
    {EncoderRole::attention_norm, "attn_norm"},
    {EncoderRole::gate, "mlp.Wi"},
    {EncoderRole::up, "mlp.Wi"},
    {EncoderRole::down, "mlp.Wo"},
    {EncoderRole::mlp_norm, "mlp_norm"},
};

extern const EncoderFamily kModernbertEncoder;
constexpr EncoderFamily kModernbertEncoder = {
    .name = "ModernBert",
    .model_type = "modernbert",
    .config = {.keys = {.act = "hidden_activation", .eps = "norm_eps"},
               .norm_eps = 1e-5,
               .max_positions = 8192,
               .types = false,
               .absolute_positions = false,
               .modern = true,
               .head_act = "gelu"},
    .folder = {.names = kModernbertNames,
               .prefix = "model.",
               .block = "layers.",
               .fused = true,
               .norm_biases = false}};

}  // namespace loom::core
