// Youtu-LLM.
// Sources: configuration_youtu.py and modeling_youtu.py of transformers 5.24.
#include "families/family.hpp"

namespace loom::core {

constexpr FixedSetting kYoutuFixed[] = {{"rope_interleave", true}};
constexpr LatentRules kYoutuLatent = {};

extern const DecoderFamily kYoutuFamily;
constexpr DecoderFamily kYoutuFamily = {.hf_class = "YoutuForCausalLM",
                                        .model_type = "youtu",
                                        .config = {.bias = kNoBiases,
                                                   .fixed = kYoutuFixed,
                                                   .latent = &kYoutuLatent,
                                                   .max_positions = 131072,
                                                   .tied = true,
                                                   .bos_token_id = 128000,
                                                   .eos_token_id = 128001},
                                        .folder = {.pairs_rows = true}};

}  // namespace loom::core
