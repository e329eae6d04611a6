// Phi-3.5-MoE.
// Sources: configuration_phimoe.py and modeling_phimoe.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kPhimoeNames[] = {
    {DecoderRole::router, "block_sparse_moe.gate"},
    {DecoderRole::expert_gate, "block_sparse_moe.experts.#.w1"},
    {DecoderRole::expert_up, "block_sparse_moe.experts.#.w3"},
    {DecoderRole::expert_down, "block_sparse_moe.experts.#.w2"},
};
constexpr ExpertRules kPhimoeExperts = {.count = "num_local_experts",
                                        .other_count = "num_experts",
                                        .inner = {},
                                        .jitter = "router_jitter_noise",
                                        .count_default = 16,
                                        .chosen_default = 2,
                                        .normalize = false,
                                        .score = RouterScore::sparsemixer};

extern const DecoderFamily kPhimoeFamily;
constexpr DecoderFamily kPhimoeFamily = {.hf_class = "PhimoeForCausalLM",
                                         .model_type = "phimoe",
                                         .config = {.head_bias_key = "lm_head_bias",
                                                    .layer_norms = true,
                                                    .kv_heads_default = false,
                                                    .max_positions = 131072,
                                                    .rms_norm_eps = 1e-5,
                                                    .rope_theta = 1e6,
                                                    .sliding = ConfigRules::Sliding::every,
                                                    .bos_token_id = 1,
                                                    .eos_token_id = 2},
                                         .folder = {.names = kPhimoeNames},
                                         .experts = &kPhimoeExperts};

}  // namespace loom::core
