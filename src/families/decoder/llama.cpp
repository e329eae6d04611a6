// Llama, and models of its structure such as SmolLM2.
// Sources: configuration_llama.py and modeling_llama.py of transformers 5.23;
// the graph llama of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kLlamaFamily;
constexpr DecoderFamily kLlamaFamily = {
    .hf_class = "LlamaForCausalLM",
    .model_type = "llama",
    .network_rank = 1,
    .config = {.bias = kBothBiases, .bos_token_id = 1, .eos_token_id = 2},
    .gguf = {.name = "llama", .pairs_rows = true, .optional_parts = true}};

}  // namespace loom::core
