// OLMo 3.
// Sources: configuration_olmo3.py and modeling_olmo3.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kOlmo3Family;
constexpr DecoderFamily kOlmo3Family = {.hf_class = "Olmo3ForCausalLM",
                                        .model_type = "olmo3",
                                        .config = {.qk_norm = true,
                                                   .qk_norm_form = QkNormForm::rms_wide,
                                                   .pre_norms = false,
                                                   .post_norms = true,
                                                   .rms_norm_eps = 1e-5,
                                                   .local_rope = true,
                                                   .rope_theta = 5e5,
                                                   .local_theta = 5e5,
                                                   .sliding = ConfigRules::Sliding::pattern,
                                                   .window = 4096,
                                                   .pattern = 4,
                                                   .eos_token_id = 50279,
                                                   .pad_token_id = 1}};

}  // namespace loom::core
