// MiniMax M2.
// Sources: configuration_minimax_m2.py and modeling_minimax_m2.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kMinimaxM2Names[] = {
    {DecoderRole::router, "block_sparse_moe.gate"},
    {DecoderRole::choice_bias, "block_sparse_moe.e_score_correction_bias", true},
    {DecoderRole::expert_gate, "block_sparse_moe.experts.#.w1"},
    {DecoderRole::expert_up, "block_sparse_moe.experts.#.w3"},
    {DecoderRole::expert_down, "block_sparse_moe.experts.#.w2"},
};
constexpr ExpertRules kMinimaxM2Experts = {.count = "num_local_experts",
                                           .other_count = "num_experts",
                                           .inner = {},
                                           .count_default = 256,
                                           .chosen_default = 8,
                                           .score = RouterScore::sigmoid,
                                           .choice_bias = true};

extern const DecoderFamily kMinimaxM2Family;
constexpr DecoderFamily kMinimaxM2Family = {.hf_class = "MiniMaxM2ForCausalLM",
                                            .model_type = "minimax_m2",
                                            .config = {.bias = kNoBiases,
                                                       .qk_norm = true,
                                                       .qk_norm_form = QkNormForm::rms_wide,
                                                       .head_dim = 128,
                                                       .max_positions = 196608,
                                                       .partial_rotary = true,
                                                       .rope_theta = 5e6,
                                                       .bos_token_id = 200034,
                                                       .eos_token_id = 200020},
                                            .folder = {.names = kMinimaxM2Names},
                                            .experts = &kMinimaxM2Experts};

}  // namespace loom::core
