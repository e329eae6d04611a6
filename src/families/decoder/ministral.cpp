// Ministral.
// Sources: configuration_ministral.py and modeling_ministral.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kMinistralFamily;
constexpr DecoderFamily kMinistralFamily = {.hf_class = "MinistralForCausalLM",
                                            .model_type = "ministral",
                                            .config = {.bias = kNoBiases,
                                                       .kv_heads_default = false,
                                                       .max_positions = 131072,
                                                       .sliding = ConfigRules::Sliding::listed,
                                                       .window = 4096,
                                                       .bos_token_id = 1,
                                                       .eos_token_id = 2}};

}  // namespace loom::core
