// Gemma.
// Sources: configuration_gemma.py and modeling_gemma.py of transformers 5.23;
// the graph gemma of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kGemmaFamily;
constexpr DecoderFamily kGemmaFamily = {
    .hf_class = "GemmaForCausalLM",
    .model_type = "gemma",
    .network_rank = 7,
    .config = {.unit_offset_norms = true,
               .kv_heads_default = false,
               .head_dim = 256,
               .max_positions = 8192,
               .tied = true,
               .scaled_embedding = true,
               .act = "gelu_pytorch_tanh",
               // The first files say gelu but mean its approximation; the class corrects them.
               .gelu_means = "gelu_pytorch_tanh",
               .bos_token_id = 2,
               .eos_token_id = 1},
    .gguf = {.name = "gemma", .tied = true}};

}  // namespace loom::core
