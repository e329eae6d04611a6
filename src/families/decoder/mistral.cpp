// Mistral.
// Sources: configuration_mistral.py and modeling_mistral.py of transformers 5.23.
// GGUF files of it have the name and the graph of Llama.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kMistralFamily;
constexpr DecoderFamily kMistralFamily = {.hf_class = "MistralForCausalLM",
                                          .model_type = "mistral",
                                          .network_rank = 4,
                                          .config = {.bias = kNoBiases,
                                                     .kv_heads_default = false,
                                                     .max_positions = 131072,
                                                     .sliding = ConfigRules::Sliding::every,
                                                     .window = 4096,
                                                     .bos_token_id = 1,
                                                     .eos_token_id = 2},
                                          .gguf = {.name = "llama", .shared_name = true}};

}  // namespace loom::core
