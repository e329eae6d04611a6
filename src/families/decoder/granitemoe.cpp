// GraniteMoE.
// Sources: configuration_granitemoe.py and modeling_granitemoe.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kGranitemoeNames[] = {
    {DecoderRole::router, "block_sparse_moe.router.layer"},
    {DecoderRole::expert_gate, "block_sparse_moe.input_linear"},
    {DecoderRole::expert_up, "block_sparse_moe.input_linear"},
    {DecoderRole::expert_down, "block_sparse_moe.output_linear"},
};
constexpr ExpertRules kGranitemoeExperts = {.count = "num_local_experts",
                                            .other_count = "num_experts",
                                            .inner = {},
                                            .count_default = 8,
                                            .chosen_default = 2};

extern const DecoderFamily kGranitemoeFamily;
constexpr DecoderFamily kGranitemoeFamily = {
    .hf_class = "GraniteMoeForCausalLM",
    .model_type = "granitemoe",
    .config = {.embedding_factor = {"embedding_multiplier", 1},
               .score_factor = {"attention_multiplier", 1},
               .residual_factor = {"residual_multiplier", 1},
               .logit_divisor = {"logits_scaling", 1},
               .bos_token_id = 1,
               .eos_token_id = 2},
    .folder = {.names = kGranitemoeNames},
    .experts = &kGranitemoeExperts};

}  // namespace loom::core
