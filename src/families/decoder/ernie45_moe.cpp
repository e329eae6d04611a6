// Ernie 4.5 with experts.
// Sources: configuration_ernie4_5_moe.py and modeling_ernie4_5_moe.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kErnie45MoeNames[] = {
    {DecoderRole::choice_bias, "mlp.moe_statics.e_score_correction_bias", true},
};
constexpr FixedSetting kErnie45MoeFixed[] = {{"use_bias", false}};
constexpr ExpertRules kErnie45MoeExperts = {.count = "moe_num_experts",
                                            .other_count = "num_experts",
                                            .chosen = "moe_k",
                                            .shared_count = "moe_num_shared_experts",
                                            .first_dense = "moe_layer_start_index",
                                            .last = "moe_layer_end_index",
                                            .step = "moe_layer_interval",
                                            .count_default = 64,
                                            .chosen_default = 6,
                                            .inner_default = 1536,
                                            .shared_default = 2,
                                            .first_dense_default = 1,
                                            .choice_bias = true};

extern const DecoderFamily kErnie45MoeFamily;
constexpr DecoderFamily kErnie45MoeFamily = {
    .hf_class = "Ernie4_5_MoeForCausalLM",
    .model_type = "ernie4_5_moe",
    .config = {.bias = kNoBiases,
               .fixed = kErnie45MoeFixed,
               .max_positions = 131072,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .rope_theta = 5e5,
               .bos_token_id = 1,
               .eos_token_id = 2},
    .folder = {.names = kErnie45MoeNames, .pairs_rows = true, .choice_bias_row = true},
    .experts = &kErnie45MoeExperts};

}  // namespace loom::core
