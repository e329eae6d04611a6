// Qwen3-MoE.
// Sources: configuration_qwen3_moe.py and modeling_qwen3_moe.py of transformers 5.24;
// the graph qwen3moe of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

constexpr ExpertRules kQwen3MoeExperts = {.normalize_key = "norm_topk_prob",
                                          .dense_layers = "mlp_only_layers",
                                          .step = "decoder_sparse_step",
                                          .count_default = 128,
                                          .chosen_default = 8,
                                          .inner_default = 768,
                                          .normalize = false};

extern const DecoderFamily kQwen3MoeFamily;
constexpr DecoderFamily kQwen3MoeFamily = {.hf_class = "Qwen3MoeForCausalLM",
                                           .model_type = "qwen3_moe",
                                           .config = {.qk_norm = true,
                                                      .kv_heads_default = false,
                                                      .max_positions = 32768,
                                                      .sliding = ConfigRules::Sliding::every,
                                                      .window_switch = true,
                                                      .window = 4096},
                                           .gguf = {.name = "qwen3moe"},
                                           .experts = &kQwen3MoeExperts};

}  // namespace loom::core
