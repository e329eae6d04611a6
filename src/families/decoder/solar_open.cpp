// Solar Open.
// Sources: configuration_solar_open.py and modeling_solar_open.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

// There is no layer without experts.
constexpr ConfigKeys kSolarOpenKeys = {.inner = "moe_intermediate_size"};
constexpr ExpertRules kSolarOpenExperts = {.count = "n_routed_experts",
                                           .other_count = "num_experts",
                                           .inner = {},
                                           .normalize_key = "norm_topk_prob",
                                           .scale = "routed_scaling_factor",
                                           .groups = "n_group",
                                           .chosen_groups = "topk_group",
                                           .shared_count = "n_shared_experts",
                                           .count_default = 128,
                                           .chosen_default = 8,
                                           .shared_default = 1,
                                           .score = RouterScore::sigmoid,
                                           .choice_bias = true};

extern const DecoderFamily kSolarOpenFamily;
constexpr DecoderFamily kSolarOpenFamily = {.hf_class = "SolarOpenForCausalLM",
                                            .model_type = "solar_open",
                                            .config = {.bias = {.out = {}},
                                                       .keys = &kSolarOpenKeys,
                                                       .head_dim = 128,
                                                       .max_positions = 131072,
                                                       .rms_norm_eps = 1e-5,
                                                       .rope_theta = 1e6},
                                            .experts = &kSolarOpenExperts};

}  // namespace loom::core
