// BitNet.
// Sources: configuration_bitnet.py and modeling_bitnet.py of transformers 5.23;
// the graph bitnet of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kBitnetFamily;
constexpr DecoderFamily kBitnetFamily = {
    .hf_class = "BitNetForCausalLM",
    .model_type = "bitnet",
    .network_rank = 5,
    .config = {.sub_norms = true,
               .kv_heads_default = false,
               .rms_norm_eps = 1e-5,
               .rope_theta = 5e5,
               .act = "relu2",
               .bos_token_id = 128000,
               .eos_token_id = 128001},
    // The first models (b1.58 large, 3B) use SiLU; the 2B-4T model uses squared ReLU.
    .gguf = {.name = "bitnet", .bias = false, .act = "silu", .square = true, .tied = true}};

}  // namespace loom::core
