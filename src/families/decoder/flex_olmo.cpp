// FlexOlmo.
// Sources: configuration_flex_olmo.py and modeling_flex_olmo.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ExpertRules kFlexOlmoExperts = {.inner = {},
                                          .normalize_key = "norm_topk_prob",
                                          .count_default = 7,
                                          .chosen_default = 5,
                                          .normalize = false};

extern const DecoderFamily kFlexOlmoFamily;
constexpr DecoderFamily kFlexOlmoFamily = {.hf_class = "FlexOlmoForCausalLM",
                                           .model_type = "flex_olmo",
                                           .config = {.qk_norm = true,
                                                      .qk_norm_form = QkNormForm::rms_wide,
                                                      .pre_norms = false,
                                                      .post_norms = true,
                                                      .max_positions = 4096,
                                                      .rope_theta = 5e5,
                                                      .eos_token_id = 100257,
                                                      .pad_token_id = 100277},
                                           .experts = &kFlexOlmoExperts};

}  // namespace loom::core
