// Cohere Command R and Aya.
// Sources: configuration_cohere.py and modeling_cohere.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kCohereKeys = {.eps = "layer_norm_eps"};

extern const DecoderFamily kCohereFamily;
constexpr DecoderFamily kCohereFamily = {.hf_class = "CohereForCausalLM",
                                         .model_type = "cohere",
                                         .config = {.layer_norms = true,
                                                    .norm_biases = false,
                                                    .qk_norm_key = "use_qk_norm",
                                                    .qk_norm_form = QkNormForm::layer,
                                                    .residual = ResidualKind::shared_norm,
                                                    .keys = &kCohereKeys,
                                                    .max_positions = 8192,
                                                    .rms_norm_eps = 1e-5,
                                                    .tied = true,
                                                    .rope_theta = 5e5,
                                                    .logit_factor = {"logit_scale", 0.0625},
                                                    .bos_token_id = 5,
                                                    .eos_token_id = 255001},
                                         .folder = {.pairs_rows = true, .split_qk_norms = true}};

}  // namespace loom::core
