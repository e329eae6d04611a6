// DeepSeek V2.
// Sources: configuration_deepseek_v2.py and modeling_deepseek_v2.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr FixedSetting kDeepseekV2Fixed[] = {{"mlp_bias", false}};
constexpr LatentRules kDeepseekV2Latent = {};
constexpr ExpertRules kDeepseekV2Experts = {.count = "n_routed_experts",
                                            .other_count = "num_experts",
                                            .scale = "routed_scaling_factor",
                                            .groups = "n_group",
                                            .chosen_groups = "topk_group",
                                            .group_method = "topk_method",
                                            .shared_count = "n_shared_experts",
                                            .first_dense = "first_k_dense_replace",
                                            .count_default = 64,
                                            .inner_default = 1407,
                                            .shared_default = 2,
                                            .normalize = false,
                                            .group_best = 1};

extern const DecoderFamily kDeepseekV2Family;
constexpr DecoderFamily kDeepseekV2Family = {.hf_class = "DeepseekV2ForCausalLM",
                                             .model_type = "deepseek_v2",
                                             .config = {.bias = kNoBiases,
                                                        .fixed = kDeepseekV2Fixed,
                                                        .latent = &kDeepseekV2Latent,
                                                        .bos_token_id = 1,
                                                        .eos_token_id = 2},
                                             .folder = {.pairs_rows = true},
                                             .experts = &kDeepseekV2Experts};

}  // namespace loom::core
