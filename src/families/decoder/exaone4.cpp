// EXAONE 4.
// Sources: configuration_exaone4.py and modeling_exaone4.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kExaone4Family;
constexpr DecoderFamily kExaone4Family = {.hf_class = "Exaone4ForCausalLM",
                                          .model_type = "exaone4",
                                          .config = {.bias = kNoBiases,
                                                     .qk_norm = true,
                                                     .pre_norms = false,
                                                     .post_norms = true,
                                                     .kv_heads_default = false,
                                                     .rms_norm_eps = 1e-5,
                                                     .nope = ConfigRules::Nope::full_if_windows,
                                                     .sliding = ConfigRules::Sliding::pattern,
                                                     .window = 4096,
                                                     .pattern = 4,
                                                     .bos_token_id = 0,
                                                     .eos_token_id = 2}};

}  // namespace loom::core
