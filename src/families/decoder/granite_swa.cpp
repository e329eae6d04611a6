// Granite with sliding windows and sinks.
// Sources: configuration_granite_swa.py and modeling_granite_swa.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kGraniteSwaFamily;
constexpr DecoderFamily kGraniteSwaFamily = {
    .hf_class = "GraniteSWAForCausalLM",
    .model_type = "granite_swa",
    .config = {.bias = kBothBiases,
               .sinks = true,
               .max_positions = 8192,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .layer_thetas = "layer_rope_theta",
               .sliding = ConfigRules::Sliding::first,
               .window = 128,
               .pattern = 4,
               .embedding_factor = {"embedding_multiplier", 1},
               .score_factor = {"attention_multiplier", 1},
               .residual_factor = {"residual_multiplier", 1},
               .logit_divisor = {"logits_scaling", 1},
               .bos_token_id = 100257,
               .eos_token_id = 100257}};

}  // namespace loom::core
