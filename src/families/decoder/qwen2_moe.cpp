// Qwen1.5-MoE and Qwen2-MoE.
// Sources: configuration_qwen2_moe.py and modeling_qwen2_moe.py of transformers 5.24;
// the graph qwen2moe of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kQwen2MoeNames[] = {
    {DecoderRole::shared_gate, "mlp.shared_expert.gate_proj"},
    {DecoderRole::shared_up, "mlp.shared_expert.up_proj"},
    {DecoderRole::shared_down, "mlp.shared_expert.down_proj"},
};
constexpr FixedSetting kQwen2MoeFixed[] = {{"qkv_bias", true}};
constexpr ExpertRules kQwen2MoeExperts = {.normalize_key = "norm_topk_prob",
                                          .shared_inner = "shared_expert_intermediate_size",
                                          .dense_layers = "mlp_only_layers",
                                          .step = "decoder_sparse_step",
                                          .count_default = 60,
                                          .chosen_default = 4,
                                          .inner_default = 1408,
                                          .shared_default = 5632,
                                          .normalize = false,
                                          .shared_gate = true};

extern const DecoderFamily kQwen2MoeFamily;
constexpr DecoderFamily kQwen2MoeFamily = {.hf_class = "Qwen2MoeForCausalLM",
                                           .model_type = "qwen2_moe",
                                           .config = {.bias = ConfigRules::Bias::qkv,
                                                      .fixed = kQwen2MoeFixed,
                                                      .kv_heads_default = false,
                                                      .max_positions = 32768,
                                                      .sliding = ConfigRules::Sliding::early,
                                                      .window_switch = true,
                                                      .window = 4096},
                                           .folder = {.names = kQwen2MoeNames},
                                           .gguf = {.name = "qwen2moe",
                                                    .qkv_bias = true,
                                                    .normalized_experts = false,
                                                    .square = true,
                                                    .untied = true},
                                           .experts = &kQwen2MoeExperts};

}  // namespace loom::core
