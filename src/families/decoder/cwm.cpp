// CWM, the Code World Model.
// Sources: configuration_cwm.py and modeling_cwm.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kCwmFamily;
constexpr DecoderFamily kCwmFamily = {.hf_class = "CwmForCausalLM",
                                      .model_type = "cwm",
                                      .config = {.bias = {{}, {}, {"mlp_bias"}},
                                                 .kv_heads_default = false,
                                                 .head_dim = 128,
                                                 .max_positions = 131072,
                                                 .rms_norm_eps = 1e-5,
                                                 .rope_theta = 1e6,
                                                 .rope_required = true,
                                                 .sliding = ConfigRules::Sliding::first,
                                                 .window = 8192,
                                                 .pattern = 4,
                                                 .bos_token_id = 128000,
                                                 .eos_token_id = 128001}};

}  // namespace loom::core
