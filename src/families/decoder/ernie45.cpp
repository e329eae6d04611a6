// Ernie 4.5, of dense layers.
// Sources: configuration_ernie4_5.py and modeling_ernie4_5.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kErnie45Family;
constexpr DecoderFamily kErnie45Family = {
    .hf_class = "Ernie4_5ForCausalLM",
    .model_type = "ernie4_5",
    .config = {.bias = {{"use_bias"}, {"use_bias"}, {"use_bias"}},
               .kv_heads_default = false,
               .head_dim = 128,
               .max_positions = 131072,
               .rms_norm_eps = 1e-5,
               .tied = true,
               .rope_theta = 5e5,
               .bos_token_id = 1,
               .eos_token_id = 2},
    .folder = {.pairs_rows = true}};

}  // namespace loom::core
