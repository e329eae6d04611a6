// Qwen2 and Qwen2.5.
// Sources: configuration_qwen2.py and modeling_qwen2.py of transformers 5.23;
// the graph qwen2 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kQwen2Family;
constexpr DecoderFamily kQwen2Family = {
    .hf_class = "Qwen2ForCausalLM",
    .model_type = "qwen2",
    .network_rank = 2,
    .config = {.bias = kQkvBiases,
               .kv_heads_default = false,
               .max_positions = 32768,
               .sliding = ConfigRules::Sliding::late,
               .window_switch = true,
               .window = 4096},
    .gguf = {.name = "qwen2", .qkv_bias = true, .square = true}};

}  // namespace loom::core
