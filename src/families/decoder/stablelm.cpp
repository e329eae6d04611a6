// StableLM.
// Sources: configuration_stablelm.py and modeling_stablelm.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kStablelmKeys = {.eps = "layer_norm_eps"};
constexpr FixedSetting kStablelmFixed[] = {{"qk_layernorm", false}};

extern const DecoderFamily kStablelmFamily;
constexpr DecoderFamily kStablelmFamily = {.hf_class = "StableLmForCausalLM",
                                           .model_type = "stablelm",
                                           .config = {.bias = {.qkv = {"use_qkv_bias"}, .out = {}},
                                                      .layer_norms = true,
                                                      .residual = ResidualKind::shared_norm,
                                                      .parallel_key = "use_parallel_residual",
                                                      .parallel = false,
                                                      .keys = &kStablelmKeys,
                                                      .fixed = kStablelmFixed,
                                                      .kv_heads_default = false,
                                                      .max_positions = 4096,
                                                      .rms_norm_eps = 1e-5,
                                                      .partial_rotary = true,
                                                      .rotary_part = 0.25,
                                                      .bos_token_id = 0,
                                                      .eos_token_id = 0}};

}  // namespace loom::core
