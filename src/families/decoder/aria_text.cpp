// The language model of Aria.
// Sources: configuration_aria_text.py and modeling_aria_text.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kAriaTextNames[] = {
    {DecoderRole::router, "mlp.router"},
    {DecoderRole::expert_gate, "mlp.experts.fc1"},
    {DecoderRole::expert_up, "mlp.experts.fc1"},
    {DecoderRole::expert_down, "mlp.experts.fc2"},
};
constexpr FixedSetting kAriaTextFixed[] = {{"mlp_bias", false}};
constexpr ExpertRules kAriaTextExperts = {.count = "moe_num_experts",
                                          .other_count = {},
                                          .chosen = "moe_topk",
                                          .inner = {},
                                          .shared_count = "moe_num_shared_experts",
                                          .count_default = 8,
                                          .chosen_default = 2,
                                          .shared_default = 2};

extern const DecoderFamily kAriaTextFamily;
constexpr DecoderFamily kAriaTextFamily = {
    .hf_class = "AriaTextForCausalLM",
    .model_type = "aria_text",
    .config = {.fixed = kAriaTextFixed, .bos_token_id = 1, .eos_token_id = 2, .pad_token_id = 2},
    .folder = {.names = kAriaTextNames, .transposed_experts = true},
    .experts = &kAriaTextExperts};

}  // namespace loom::core
