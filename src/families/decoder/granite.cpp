// Granite, of dense layers.
// Sources: configuration_granite.py and modeling_granite.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kGraniteFamily;
constexpr DecoderFamily kGraniteFamily = {
    .hf_class = "GraniteForCausalLM",
    .model_type = "granite",
    .config = {.bias = kBothBiases,
               .embedding_factor = {"embedding_multiplier", 1},
               .score_factor = {"attention_multiplier", 1},
               .residual_factor = {"residual_multiplier", 1},
               .logit_divisor = {"logits_scaling", 1},
               .bos_token_id = 1,
               .eos_token_id = 2}};

}  // namespace loom::core
