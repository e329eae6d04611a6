// GLM-4.7 Flash.
// Sources: configuration_glm4_moe_lite.py and modeling_glm4_moe_lite.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr FixedSetting kGlm4MoeLiteFixed[] = {{"rope_interleave", true}};
constexpr LatentRules kGlm4MoeLiteLatent = {.latent_q = 768, .plain = 192, .value = 256};
constexpr ExpertRules kGlm4MoeLiteExperts = {.count = "n_routed_experts",
                                             .other_count = "num_experts",
                                             .normalize_key = "norm_topk_prob",
                                             .scale = "routed_scaling_factor",
                                             .groups = "n_group",
                                             .chosen_groups = "topk_group",
                                             .shared_count = "n_shared_experts",
                                             .layer_kinds = "mlp_layer_types",
                                             .count_default = 64,
                                             .chosen_default = 4,
                                             .inner_default = 1536,
                                             .shared_default = 1,
                                             .first_dense_default = 1,
                                             .scale_default = 1.8,
                                             .score = RouterScore::sigmoid,
                                             .choice_bias = true};

extern const DecoderFamily kGlm4MoeLiteFamily;
constexpr DecoderFamily kGlm4MoeLiteFamily = {.hf_class = "Glm4MoeLiteForCausalLM",
                                              .model_type = "glm4_moe_lite",
                                              .config = {.bias = kNoBiases,
                                                         .fixed = kGlm4MoeLiteFixed,
                                                         .latent = &kGlm4MoeLiteLatent,
                                                         .max_positions = 202752,
                                                         .rms_norm_eps = 1e-5,
                                                         .bos_token_id = 0,
                                                         .eos_token_id = 1},
                                              .folder = {.pairs_rows = true},
                                              .experts = &kGlm4MoeLiteExperts};

}  // namespace loom::core
