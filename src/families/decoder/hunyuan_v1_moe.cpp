// Hunyuan with experts.
// Sources: configuration_hunyuan_v1_moe.py and modeling_hunyuan_v1_moe.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kHunyuanV1MoeNames[] = {
    {DecoderRole::q_norm, "self_attn.query_layernorm"},
    {DecoderRole::k_norm, "self_attn.key_layernorm"},
    {DecoderRole::router, "mlp.gate.wg"},
    {DecoderRole::shared_gate, "mlp.shared_mlp.gate_proj"},
    {DecoderRole::shared_up, "mlp.shared_mlp.up_proj"},
    {DecoderRole::shared_down, "mlp.shared_mlp.down_proj"},
};
constexpr ExpertRules kHunyuanV1MoeExperts = {.chosen = "moe_topk",
                                              .inner = {},
                                              .count_default = 1,
                                              .chosen_default = 1,
                                              .shared_default = 1};

extern const DecoderFamily kHunyuanV1MoeFamily;
constexpr DecoderFamily kHunyuanV1MoeFamily = {.hf_class = "HunYuanMoEV1ForCausalLM",
                                               .model_type = "hunyuan_v1_moe",
                                               .config = {.qk_norm = true,
                                                          .qk_norm_after_rope = true,
                                                          .rms_norm_eps = 1e-5,
                                                          .alpha_rope = true,
                                                          .bos_token_id = 1,
                                                          .eos_token_id = 2},
                                               .folder = {.names = kHunyuanV1MoeNames},
                                               .experts = &kHunyuanV1MoeExperts};

}  // namespace loom::core
