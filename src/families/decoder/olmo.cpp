// OLMo of 2024.
// Sources: configuration_olmo.py and modeling_olmo.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kOlmoKeys = {.eps = ""};

extern const DecoderFamily kOlmoFamily;
constexpr DecoderFamily kOlmoFamily = {.hf_class = "OlmoForCausalLM",
                                       .model_type = "olmo",
                                       .config = {.layer_norms = true,
                                                  .norm_weights = false,
                                                  .norm_biases = false,
                                                  .keys = &kOlmoKeys,
                                                  .rms_norm_eps = 1e-5,
                                                  .clip_key = "clip_qkv",
                                                  .eos_token_id = 50279}};

}  // namespace loom::core
