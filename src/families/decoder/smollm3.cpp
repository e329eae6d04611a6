// SmolLM3.
// Sources: configuration_smollm3.py and modeling_smollm3.py of transformers 5.23;
// the graph smollm3 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kSmollm3Family;
constexpr DecoderFamily kSmollm3Family = {.hf_class = "SmolLM3ForCausalLM",
                                          .model_type = "smollm3",
                                          .network_rank = 6,
                                          .config = {.bias = kBothBiases,
                                                     .kv_heads_default = false,
                                                     .max_positions = 32768,
                                                     .tied = true,
                                                     .nope = ConfigRules::Nope::listed,
                                                     .rope_theta = 2e6,
                                                     .sliding = ConfigRules::Sliding::nope,
                                                     .window_switch = true,
                                                     .bos_token_id = 128000,
                                                     .eos_token_id = 128001,
                                                     .pad_token_id = 128004},
                                          .gguf = {.name = "smollm3", .pairs_rows = true}};

}  // namespace loom::core
