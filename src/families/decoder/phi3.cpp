// Phi-3 and Phi-4.
// Sources: configuration_phi3.py and modeling_phi3.py of transformers 5.23;
// the graph phi3 of llama.cpp.
#include "families/family.hpp"

namespace loom::core {

constexpr PartName kPhi3Names[] = {
    {DecoderRole::q, "self_attn.qkv_proj"}, {DecoderRole::k, "self_attn.qkv_proj"},
    {DecoderRole::v, "self_attn.qkv_proj"}, {DecoderRole::gate, "mlp.gate_up_proj"},
    {DecoderRole::up, "mlp.gate_up_proj"},
};
constexpr std::string_view kPhi3StripMarks[] = {"phi-3", "phi3"};
constexpr std::string_view kPhi3StripExcept[] = {"<unk>", "<s>", "<|endoftext|>"};

extern const DecoderFamily kPhi3Family;
constexpr DecoderFamily kPhi3Family = {.hf_class = "Phi3ForCausalLM",
                                       .model_type = "phi3",
                                       .config = {.bias = kNoBiases,
                                                  .max_positions = 4096,
                                                  .rms_norm_eps = 1e-5,
                                                  .partial_rotary = true,
                                                  .original_positions = 4096,
                                                  .sliding = ConfigRules::Sliding::every,
                                                  .bos_token_id = 1,
                                                  .eos_token_id = 32000,
                                                  .pad_token_id = 32000},
                                       .folder = {.names = kPhi3Names},
                                       .gguf = {.name = "phi3",
                                                .bias = false,
                                                .window = true,
                                                .fused = true,
                                                .square = true,
                                                .ignores_window = true,
                                                .strip_marks = kPhi3StripMarks,
                                                .strip_except = kPhi3StripExcept}};

}  // namespace loom::core
