// OLMo 2.
// Sources: configuration_olmo2.py and modeling_olmo2.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kOlmo2Family;
constexpr DecoderFamily kOlmo2Family = {.hf_class = "Olmo2ForCausalLM",
                                        .model_type = "olmo2",
                                        .config = {.qk_norm = true,
                                                   .qk_norm_form = QkNormForm::rms_wide,
                                                   .pre_norms = false,
                                                   .post_norms = true,
                                                   .rms_norm_eps = 1e-5,
                                                   .eos_token_id = 50279,
                                                   .pad_token_id = 1}};

}  // namespace loom::core
