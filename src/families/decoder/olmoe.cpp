// OLMoE.
// Sources: configuration_olmoe.py and modeling_olmoe.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

// The class limits q and k after their norm.
constexpr std::string_view kOlmoeRefused[] = {"clip_qkv"};
constexpr ExpertRules kOlmoeExperts = {.inner = {},
                                       .normalize_key = "norm_topk_prob",
                                       .count_default = 64,
                                       .chosen_default = 8,
                                       .normalize = false};

extern const DecoderFamily kOlmoeFamily;
constexpr DecoderFamily kOlmoeFamily = {.hf_class = "OlmoeForCausalLM",
                                        .model_type = "olmoe",
                                        .config = {.qk_norm = true,
                                                   .qk_norm_form = QkNormForm::rms_wide,
                                                   .refused = kOlmoeRefused,
                                                   .max_positions = 4096,
                                                   .rms_norm_eps = 1e-5,
                                                   .eos_token_id = 50279,
                                                   .pad_token_id = 1},
                                        .experts = &kOlmoeExperts};

}  // namespace loom::core
