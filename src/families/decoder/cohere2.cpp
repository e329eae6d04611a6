// Cohere Command R7B and A.
// Sources: configuration_cohere2.py and modeling_cohere2.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kCohere2Keys = {.eps = "layer_norm_eps"};

extern const DecoderFamily kCohere2Family;
constexpr DecoderFamily kCohere2Family = {.hf_class = "Cohere2ForCausalLM",
                                          .model_type = "cohere2",
                                          .config = {.layer_norms = true,
                                                     .norm_biases = false,
                                                     .residual = ResidualKind::shared_norm,
                                                     .keys = &kCohere2Keys,
                                                     .max_positions = 8192,
                                                     .rms_norm_eps = 1e-5,
                                                     .tied = true,
                                                     .nope = ConfigRules::Nope::full,
                                                     .sliding = ConfigRules::Sliding::pattern,
                                                     .window = 4096,
                                                     .pattern = 4,
                                                     .logit_factor = {"logit_scale", 0.0625},
                                                     .bos_token_id = 5,
                                                     .eos_token_id = 255001},
                                          .folder = {.pairs_rows = true}};

}  // namespace loom::core
