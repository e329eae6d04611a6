// HunYuan, of dense layers.
// Sources: configuration_hunyuan_v1_dense.py and modeling_hunyuan_v1_dense.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kHunyuanV1DenseNames[] = {
    {DecoderRole::q_norm, "self_attn.query_layernorm"},
    {DecoderRole::k_norm, "self_attn.key_layernorm"},
};

extern const DecoderFamily kHunyuanV1DenseFamily;
constexpr DecoderFamily kHunyuanV1DenseFamily = {.hf_class = "HunYuanDenseV1ForCausalLM",
                                                 .model_type = "hunyuan_v1_dense",
                                                 .config = {.qk_norm = true,
                                                            .qk_norm_after_rope = true,
                                                            .rms_norm_eps = 1e-5,
                                                            .alpha_rope = true,
                                                            .bos_token_id = 1,
                                                            .eos_token_id = 2},
                                                 .folder = {.names = kHunyuanV1DenseNames}};

}  // namespace loom::core
