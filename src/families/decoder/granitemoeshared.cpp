// GraniteMoE with a shared expert.
// Sources: configuration_granitemoeshared.py and modeling_granitemoeshared.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kGranitemoesharedNames[] = {
    {DecoderRole::router, "block_sparse_moe.router.layer"},
    {DecoderRole::expert_gate, "block_sparse_moe.input_linear"},
    {DecoderRole::expert_up, "block_sparse_moe.input_linear"},
    {DecoderRole::expert_down, "block_sparse_moe.output_linear"},
    {DecoderRole::shared_gate, "shared_mlp.input_linear"},
    {DecoderRole::shared_up, "shared_mlp.input_linear"},
    {DecoderRole::shared_down, "shared_mlp.output_linear"},
};
constexpr ExpertRules kGranitemoesharedExperts = {.count = "num_local_experts",
                                                  .other_count = "num_experts",
                                                  .inner = {},
                                                  .shared_inner = "shared_intermediate_size",
                                                  .count_default = 8,
                                                  .chosen_default = 2};

extern const DecoderFamily kGranitemoesharedFamily;
constexpr DecoderFamily kGranitemoesharedFamily = {
    .hf_class = "GraniteMoeSharedForCausalLM",
    .model_type = "granitemoeshared",
    .config = {.embedding_factor = {"embedding_multiplier", 1},
               .score_factor = {"attention_multiplier", 1},
               .residual_factor = {"residual_multiplier", 1},
               .logit_divisor = {"logits_scaling", 1},
               .bos_token_id = 1,
               .eos_token_id = 2},
    .folder = {.names = kGranitemoesharedNames},
    .experts = &kGranitemoesharedExperts};

}  // namespace loom::core
