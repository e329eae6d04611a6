// Gemma 3, of texts alone.
// Sources: configuration_gemma3.py and modeling_gemma3.py of transformers 5.23;
// the graph gemma3 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kGemma3Family;
constexpr DecoderFamily kGemma3Family = {
    .hf_class = "Gemma3ForCausalLM",
    .model_type = "gemma3_text",
    .network_rank = 9,
    .config = {.unit_offset_norms = true,
               .qk_norm = true,
               .post_norms = true,
               .kv_heads_default = false,
               .head_dim = 256,
               .max_positions = 131072,
               .tied = true,
               .scaled_embedding = true,
               .local_rope = true,
               .rope_theta = 1e6,
               .sliding = ConfigRules::Sliding::pattern,
               .window = 4096,
               .act_key = "hidden_activation",
               .act = "gelu_pytorch_tanh",
               .query_scalar = 256,
               .final_cap = true,
               .bos_token_id = 2,
               .eos_token_id = 1},
    .gguf = {.name = "gemma3", .window = true, .wide_blocks = 62}};

}  // namespace loom::core
