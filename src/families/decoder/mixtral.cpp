// Mixtral.
// Sources: configuration_mixtral.py and modeling_mixtral.py of transformers 5.24;
// the graph llama of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kMixtralNames[] = {
    {DecoderRole::router, "block_sparse_moe.gate"},
    {DecoderRole::expert_gate, "block_sparse_moe.experts.#.w1"},
    {DecoderRole::expert_up, "block_sparse_moe.experts.#.w3"},
    {DecoderRole::expert_down, "block_sparse_moe.experts.#.w2"},
};
constexpr ExpertRules kMixtralExperts = {.count = "num_local_experts",
                                         .other_count = "num_experts",
                                         .inner = {},
                                         .count_default = 8,
                                         .chosen_default = 2};

extern const DecoderFamily kMixtralFamily;
constexpr DecoderFamily kMixtralFamily = {
    .hf_class = "MixtralForCausalLM",
    .model_type = "mixtral",
    .config = {.bias = ConfigRules::Bias::never,
               .kv_heads_default = false,
               .max_positions = 131072,
               .rms_norm_eps = 1e-5,
               .rope_theta = 1e6,
               .sliding = ConfigRules::Sliding::every,
               .bos_token_id = 1,
               .eos_token_id = 2},
    .folder = {.names = kMixtralNames},
    .gguf = {.name = "llama", .shared_name = true, .pairs_rows = true, .optional_parts = true},
    .experts = &kMixtralExperts};

}  // namespace loom::core
