// Nemotron and Minitron.
// Sources: configuration_nemotron.py and modeling_nemotron.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kNemotronKeys = {.eps = "norm_eps"};

extern const DecoderFamily kNemotronFamily;
constexpr DecoderFamily kNemotronFamily = {.hf_class = "NemotronForCausalLM",
                                           .model_type = "nemotron",
                                           .config = {.bias = kBothBiases,
                                                      .layer_norms = true,
                                                      .unit_offset_norms = true,
                                                      .gated = false,
                                                      .keys = &kNemotronKeys,
                                                      .max_positions = 4096,
                                                      .rms_norm_eps = 1e-5,
                                                      .partial_rotary = true,
                                                      .rotary_part = 0.5,
                                                      .act = "relu2",
                                                      .bos_token_id = 2,
                                                      .eos_token_id = 3}};

}  // namespace loom::core
