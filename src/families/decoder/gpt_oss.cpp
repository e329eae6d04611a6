// gpt-oss.
// Sources: configuration_gpt_oss.py and modeling_gpt_oss.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kGptOssNames[] = {
    {DecoderRole::router, "mlp.router"},
    {DecoderRole::expert_gate, "mlp.experts.gate_up_proj", true},
    {DecoderRole::expert_up, "mlp.experts.gate_up_proj", true},
    {DecoderRole::expert_down, "mlp.experts.down_proj", true},
    {DecoderRole::expert_gate_bias, "mlp.experts.gate_up_proj_bias", true},
    {DecoderRole::expert_up_bias, "mlp.experts.gate_up_proj_bias", true},
    {DecoderRole::expert_down_bias, "mlp.experts.down_proj_bias", true},
};
constexpr ExpertRules kGptOssExperts = {.count = "num_local_experts",
                                        .other_count = "num_experts",
                                        .inner = {},
                                        .limit = "swiglu_limit",
                                        .gate_scale = "swiglu_alpha",
                                        .count_default = 128,
                                        .chosen_default = 4,
                                        .limit_default = 7,
                                        .gate_scale_default = 1.702,
                                        .bias = true,
                                        .up_offset = 1};

extern const DecoderFamily kGptOssFamily;
constexpr DecoderFamily kGptOssFamily = {
    .hf_class = "GptOssForCausalLM",
    .model_type = "gpt_oss",
    .config = {.bias = {{"attention_bias", true}, {"attention_bias", true}, {}},
               .sinks = true,
               .head_dim = 64,
               .max_positions = 131072,
               .rms_norm_eps = 1e-5,
               .rope_theta = 150000,
               .rope_required = true,
               .sliding = ConfigRules::Sliding::odd,
               .window = 128},
    .folder = {.names = kGptOssNames, .transposed_experts = true, .paired_gates = true},
    .experts = &kGptOssExperts};

}  // namespace loom::core
