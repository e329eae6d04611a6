// Seed-OSS.
// Sources: configuration_seed_oss.py and modeling_seed_oss.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

extern const DecoderFamily kSeedOssFamily;
constexpr DecoderFamily kSeedOssFamily = {.hf_class = "SeedOssForCausalLM",
                                          .model_type = "seed_oss",
                                          .config = {.bias = {.qkv = {"attention_bias", true},
                                                              .out = {"attention_out_bias"},
                                                              .mlp = {"mlp_bias"}},
                                                     .head_dim = 128,
                                                     .max_positions = 524288,
                                                     .bos_token_id = 0,
                                                     .eos_token_id = 2}};

}  // namespace loom::core
