// OLMo of 2024.
// Sources: configuration_olmo.py and modeling_olmo.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kOlmoKeys = {.eps = ""};
constexpr std::string_view kOlmoRefused[] = {"clip_qkv"};

extern const DecoderFamily kOlmoFamily;
constexpr DecoderFamily kOlmoFamily = {.hf_class = "OlmoForCausalLM",
                                       .model_type = "olmo",
                                       .config = {.layer_norms = true,
                                                  .norm_weights = false,
                                                  .norm_biases = false,
                                                  .keys = &kOlmoKeys,
                                                  .refused = kOlmoRefused,
                                                  .rms_norm_eps = 1e-5,
                                                  .eos_token_id = 50279}};

}  // namespace loom::core
