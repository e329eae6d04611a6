// dots.llm1.
// Sources: configuration_dots1.py and modeling_dots1.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ExpertRules kDots1Experts = {.count = "n_routed_experts",
                                       .other_count = "num_experts",
                                       .normalize_key = "norm_topk_prob",
                                       .scale = "routed_scaling_factor",
                                       .groups = "n_group",
                                       .chosen_groups = "topk_group",
                                       .shared_count = "n_shared_experts",
                                       .first_dense = "first_k_dense_replace",
                                       .inner_default = 1408,
                                       .normalize = false,
                                       .score = RouterScore::sigmoid,
                                       .choice_bias = true};

extern const DecoderFamily kDots1Family;
constexpr DecoderFamily kDots1Family = {
    .hf_class = "Dots1ForCausalLM",
    .model_type = "dots1",
    .config = {.qk_norm = true, .sliding = ConfigRules::Sliding::late, .window = 4096},
    .experts = &kDots1Experts};

}  // namespace loom::core
