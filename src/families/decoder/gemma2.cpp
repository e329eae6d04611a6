// Gemma 2.
// Sources: configuration_gemma2.py and modeling_gemma2.py of transformers 5.23;
// the graph gemma2 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kGemma2Family;
constexpr DecoderFamily kGemma2Family = {
    .hf_class = "Gemma2ForCausalLM",
    .model_type = "gemma2",
    .network_rank = 8,
    .config = {.unit_offset_norms = true,
               .post_norms = true,
               .kv_heads_default = false,
               .head_dim = 256,
               .max_positions = 8192,
               .tied = true,
               .scaled_embedding = true,
               .sliding = ConfigRules::Sliding::odd,
               .window = 4096,
               .act_key = "hidden_activation",
               .act = "gelu_pytorch_tanh",
               .query_scalar = 256,
               .attention_cap = true,
               .final_cap = true,
               .attention_cap_default = 50,
               .final_cap_default = 30,
               .bos_token_id = 2,
               .eos_token_id = 1},
    .gguf = {.name = "gemma2", .window = true, .caps = true, .wide_blocks = 46, .tied = true}};

}  // namespace loom::core
