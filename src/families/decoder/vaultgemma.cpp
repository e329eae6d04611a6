// VaultGemma.
// Sources: configuration_vaultgemma.py and modeling_vaultgemma.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kVaultgemmaNames[] = {
    {DecoderRole::mlp_norm, "pre_feedforward_layernorm"},
};

extern const DecoderFamily kVaultgemmaFamily;
constexpr DecoderFamily kVaultgemmaFamily = {.hf_class = "VaultGemmaForCausalLM",
                                             .model_type = "vaultgemma",
                                             .config = {.unit_offset_norms = true,
                                                        .kv_heads_default = false,
                                                        .head_dim = 256,
                                                        .max_positions = 8192,
                                                        .tied = true,
                                                        .scaled_embedding = true,
                                                        .sliding = ConfigRules::Sliding::odd,
                                                        .window = 4096,
                                                        .act_key = "hidden_activation",
                                                        .act = "gelu_pytorch_tanh",
                                                        .query_scalar = 256,
                                                        .attention_cap = true,
                                                        .final_cap = true,
                                                        .attention_cap_default = 50,
                                                        .final_cap_default = 30,
                                                        .bos_token_id = 2,
                                                        .eos_token_id = 1},
                                             .folder = {.names = kVaultgemmaNames}};

}  // namespace loom::core
