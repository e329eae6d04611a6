// Arcee (AFM).
// Sources: configuration_arcee.py and modeling_arcee.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kArceeFamily;
constexpr DecoderFamily kArceeFamily = {.hf_class = "ArceeForCausalLM",
                                        .model_type = "arcee",
                                        .config = {.bias = kBothBiases,
                                                   .gated = false,
                                                   .max_positions = 4096,
                                                   .rms_norm_eps = 1e-5,
                                                   .act = "relu2",
                                                   .bos_token_id = 128000,
                                                   .eos_token_id = 128001}};

}  // namespace loom::core
