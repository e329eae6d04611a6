// GraniteMoE with sliding windows and sinks.
// Sources: configuration_granitemoe_swa.py and modeling_granitemoe_swa.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kGranitemoeSwaNames[] = {
    {DecoderRole::router, "block_sparse_moe.router"},
    {DecoderRole::expert_gate, "block_sparse_moe.experts.gate_up_proj", true},
    {DecoderRole::expert_up, "block_sparse_moe.experts.gate_up_proj", true},
    {DecoderRole::expert_down, "block_sparse_moe.experts.down_proj", true},
    {DecoderRole::shared_gate, "shared_mlp.input_linear"},
    {DecoderRole::shared_up, "shared_mlp.input_linear"},
    {DecoderRole::shared_down, "shared_mlp.output_linear"},
};
constexpr ExpertRules kGranitemoeSwaExperts = {.count = "num_local_experts",
                                               .other_count = "num_experts",
                                               .inner = {},
                                               .shared_inner = "shared_intermediate_size",
                                               .count_default = 8,
                                               .chosen_default = 2};

extern const DecoderFamily kGranitemoeSwaFamily;
constexpr DecoderFamily kGranitemoeSwaFamily = {
    .hf_class = "GraniteMoeSWAForCausalLM",
    .model_type = "granitemoe_swa",
    .config = {.sinks = true,
               .layer_thetas = "layer_rope_theta",
               .sliding = ConfigRules::Sliding::first,
               .window = 128,
               .pattern = 4,
               .embedding_factor = {"embedding_multiplier", 1},
               .score_factor = {"attention_multiplier", 1},
               .residual_factor = {"residual_multiplier", 1},
               .logit_divisor = {"logits_scaling", 1},
               .bos_token_id = 1,
               .eos_token_id = 2},
    .folder = {.names = kGranitemoeSwaNames},
    .experts = &kGranitemoeSwaExperts};

}  // namespace loom::core
