// DeepSeek V3.
// Sources: configuration_deepseek_v3.py and modeling_deepseek_v3.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr FixedSetting kDeepseekV3Fixed[] = {{"rope_interleave", true}};
constexpr LatentRules kDeepseekV3Latent = {};
constexpr ExpertRules kDeepseekV3Experts = {.count = "n_routed_experts",
                                            .other_count = "num_experts",
                                            .normalize_key = "norm_topk_prob",
                                            .scale = "routed_scaling_factor",
                                            .groups = "n_group",
                                            .chosen_groups = "topk_group",
                                            .shared_count = "n_shared_experts",
                                            .first_dense = "first_k_dense_replace",
                                            .count_default = 256,
                                            .chosen_default = 8,
                                            .inner_default = 2048,
                                            .shared_default = 1,
                                            .first_dense_default = 3,
                                            .scale_default = 2.5,
                                            .score = RouterScore::sigmoid,
                                            .choice_bias = true};

extern const DecoderFamily kDeepseekV3Family;
constexpr DecoderFamily kDeepseekV3Family = {.hf_class = "DeepseekV3ForCausalLM",
                                             .model_type = "deepseek_v3",
                                             .config = {.bias = kNoBiases,
                                                        .fixed = kDeepseekV3Fixed,
                                                        .latent = &kDeepseekV3Latent,
                                                        .max_positions = 4096,
                                                        .bos_token_id = 0,
                                                        .eos_token_id = 1},
                                             .folder = {.pairs_rows = true},
                                             .experts = &kDeepseekV3Experts};

}  // namespace loom::core
