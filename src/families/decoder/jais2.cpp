// Jais 2.
// Sources: configuration_jais2.py and modeling_jais2.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr ConfigKeys kJais2Keys = {.eps = "layer_norm_eps"};

extern const DecoderFamily kJais2Family;
constexpr DecoderFamily kJais2Family = {
    .hf_class = "Jais2ForCausalLM",
    .model_type = "jais2",
    .config = {.bias = {{"attention_bias", true}, {"attention_bias", true}, {"mlp_bias", true}},
               .layer_norms = true,
               .gated = false,
               .keys = &kJais2Keys,
               .max_positions = 8192,
               .rms_norm_eps = 1e-5,
               .act = "relu2",
               .bos_token_id = 0,
               .eos_token_id = 150024}};

}  // namespace loom::core
