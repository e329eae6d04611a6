// HyperCLOVA X.
// Sources: configuration_hyperclovax.py and modeling_hyperclovax.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kHyperclovaxNames[] = {
    {DecoderRole::attention_post_norm, "post_norm1"},
    {DecoderRole::mlp_norm, "post_attention_layernorm"},
    {DecoderRole::mlp_post_norm, "post_norm2"},
};

extern const DecoderFamily kHyperclovaxFamily;
constexpr DecoderFamily kHyperclovaxFamily = {
    .hf_class = "HyperCLOVAXForCausalLM",
    .model_type = "hyperclovax",
    .config = {.bias = kBothBiases,
               .post_norms = true,
               .post_norms_key = "use_post_norm",
               .embedding_factor = {"embedding_multiplier", 1},
               .score_factor = {"attention_multiplier", 0},
               .residual_factor = {"residual_multiplier", 1},
               .logit_factor = {"logits_scaling", 1},
               .bos_token_id = 1,
               .eos_token_id = 2},
    .folder = {.names = kHyperclovaxNames}};

}  // namespace loom::core
