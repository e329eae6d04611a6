// Qwen3.
// Sources: configuration_qwen3.py and modeling_qwen3.py of transformers 5.23;
// the graph qwen3 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kQwen3Family;
constexpr DecoderFamily kQwen3Family = {.hf_class = "Qwen3ForCausalLM",
                                        .model_type = "qwen3",
                                        .network_rank = 3,
                                        .config = {.qk_norm = true,
                                                   .kv_heads_default = false,
                                                   .head_dim = 128,
                                                   .max_positions = 32768,
                                                   .sliding = ConfigRules::Sliding::late,
                                                   .window_switch = true,
                                                   .window = 4096},
                                        .gguf = {.name = "qwen3"}};

}  // namespace loom::core
