// Phi-1, Phi-1.5 and Phi-2.
// Sources: configuration_phi.py and modeling_phi.py of transformers 5.23.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kPhiKeys = {.eps = "layer_norm_eps"};
constexpr FixedSetting kPhiFixed[] = {{"qk_layernorm", false}};
constexpr PartName kPhiNames[] = {
    {DecoderRole::output_norm, "model.final_layernorm"},
    {DecoderRole::o, "self_attn.dense"},
    {DecoderRole::up, "mlp.fc1"},
    {DecoderRole::down, "mlp.fc2"},
};

extern const DecoderFamily kPhiFamily;
constexpr DecoderFamily kPhiFamily = {.hf_class = "PhiForCausalLM",
                                      .model_type = "phi",
                                      .config = {.bias = kAllBiases,
                                                 .head_bias = true,
                                                 .layer_norms = true,
                                                 .gated = false,
                                                 .residual = ResidualKind::shared_norm,
                                                 .keys = &kPhiKeys,
                                                 .fixed = kPhiFixed,
                                                 .rms_norm_eps = 1e-5,
                                                 .partial_rotary = true,
                                                 .rotary_part = 0.5,
                                                 .act = "gelu_new",
                                                 .bos_token_id = 1,
                                                 .eos_token_id = 2},
                                      .folder = {.names = kPhiNames, .optional_prefix = true}};

}  // namespace loom::core
