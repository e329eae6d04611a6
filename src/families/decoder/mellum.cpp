// Mellum.
// Sources: configuration_mellum.py and modeling_mellum.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ExpertRules kMellumExperts = {.normalize_key = "norm_topk_prob",
                                        .layer_kinds = "mlp_layer_types",
                                        .count_default = 64,
                                        .chosen_default = 8,
                                        .inner_default = 896};

extern const DecoderFamily kMellumFamily;
constexpr DecoderFamily kMellumFamily = {.hf_class = "MellumForCausalLM",
                                         .model_type = "mellum",
                                         .config = {.qk_norm = true,
                                                    .head_dim = 128,
                                                    .max_positions = 131072,
                                                    .local_rope = true,
                                                    .rope_theta = 5e5,
                                                    .sliding = ConfigRules::Sliding::typed,
                                                    .window = 1024},
                                         .experts = &kMellumExperts};

}  // namespace loom::core
