// Hunyuan 3.
// Sources: configuration_hy_v3.py and modeling_hy_v3.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kHyV3Names[] = {
    {DecoderRole::router, "mlp.router.gate"},
    {DecoderRole::choice_bias, "mlp.expert_bias", true},
    {DecoderRole::shared_gate, "mlp.shared_mlp.gate_proj"},
    {DecoderRole::shared_up, "mlp.shared_mlp.up_proj"},
    {DecoderRole::shared_down, "mlp.shared_mlp.down_proj"},
};
constexpr FixedSetting kHyV3Fixed[] = {{"mlp_bias", false}};
constexpr ExpertRules kHyV3Experts = {.scale = "router_scaling_factor",
                                      .shared_count = "num_shared_experts",
                                      .layer_kinds = "mlp_layer_types",
                                      .count_default = 192,
                                      .chosen_default = 8,
                                      .inner_default = 1536,
                                      .shared_default = 1,
                                      .first_dense_default = 1,
                                      .scale_default = 2.826,
                                      .score = RouterScore::sigmoid,
                                      .choice_bias = true};

extern const DecoderFamily kHyV3Family;
constexpr DecoderFamily kHyV3Family = {.hf_class = "HYV3ForCausalLM",
                                       .model_type = "hy_v3",
                                       .config = {.qk_norm = true,
                                                  .fixed = kHyV3Fixed,
                                                  .head_dim = 128,
                                                  .max_positions = 131072,
                                                  .rms_norm_eps = 1e-5,
                                                  .rope_theta = 11158840},
                                       .folder = {.names = kHyV3Names},
                                       .experts = &kHyV3Experts};

}  // namespace loom::core
