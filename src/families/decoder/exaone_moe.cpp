// EXAONE with experts.
// Sources: configuration_exaone_moe.py and modeling_exaone_moe.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kExaoneMoeNames[] = {
    {DecoderRole::choice_bias, "mlp.e_score_correction_bias", true},
};
constexpr ExpertRules kExaoneMoeExperts = {.count = "num_experts",
                                           .other_count = {},
                                           .normalize_key = "norm_topk_prob",
                                           .scale = "routed_scaling_factor",
                                           .groups = "n_group",
                                           .chosen_groups = "topk_group",
                                           .shared_count = "num_shared_experts",
                                           .first_dense = "first_k_dense_replace",
                                           .layer_kinds = "mlp_layer_types",
                                           .count_default = 64,
                                           .chosen_default = 8,
                                           .inner_default = 1024,
                                           .shared_default = 1,
                                           .first_dense_default = 1,
                                           .scale_default = 2.5,
                                           .score = RouterScore::sigmoid,
                                           .choice_bias = true};

extern const DecoderFamily kExaoneMoeFamily;
constexpr DecoderFamily kExaoneMoeFamily = {.hf_class = "ExaoneMoeForCausalLM",
                                            .model_type = "exaone_moe",
                                            .config = {.bias = kNoBiases,
                                                       .qk_norm = true,
                                                       .rms_norm_eps = 1e-5,
                                                       .nope = ConfigRules::Nope::full_if_windows,
                                                       .sliding = ConfigRules::Sliding::pattern,
                                                       .window = 4096,
                                                       .pattern = 4,
                                                       .bos_token_id = 1,
                                                       .eos_token_id = 53},
                                            .folder = {.names = kExaoneMoeNames},
                                            .experts = &kExaoneMoeExperts};

}  // namespace loom::core
