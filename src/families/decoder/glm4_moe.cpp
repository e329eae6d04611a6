// GLM-4.5.
// Sources: configuration_glm4_moe.py and modeling_glm4_moe.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ExpertRules kGlm4MoeExperts = {.count = "n_routed_experts",
                                         .other_count = "num_experts",
                                         .normalize_key = "norm_topk_prob",
                                         .scale = "routed_scaling_factor",
                                         .groups = "n_group",
                                         .chosen_groups = "topk_group",
                                         .shared_count = "n_shared_experts",
                                         .first_dense = "first_k_dense_replace",
                                         .count_default = 128,
                                         .chosen_default = 8,
                                         .inner_default = 1408,
                                         .shared_default = 1,
                                         .first_dense_default = 1,
                                         .score = RouterScore::sigmoid,
                                         .choice_bias = true};

extern const DecoderFamily kGlm4MoeFamily;
constexpr DecoderFamily kGlm4MoeFamily = {.hf_class = "Glm4MoeForCausalLM",
                                          .model_type = "glm4_moe",
                                          .config = {.bias = {.out = {}},
                                                     .qk_norm_key = "use_qk_norm",
                                                     .max_positions = 131072,
                                                     .rms_norm_eps = 1e-5,
                                                     .partial_rotary = true,
                                                     .rotary_part = 0.5},
                                          .experts = &kGlm4MoeExperts};

}  // namespace loom::core
