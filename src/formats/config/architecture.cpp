// See architecture.hpp. Source of every value: configuration_*.py and modeling_*.py of
// transformers 5.23.
#include "formats/config/architecture.hpp"

#include <array>
#include <vector>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Bias = HfArchitecture::Bias;
using Sliding = HfArchitecture::Sliding;

constexpr HfArchitecture kLlama = {.name = "LlamaForCausalLM",
                                   .model_type = "llama",
                                   .reads_mlp_bias = true,
                                   .bos_token_id = 1,
                                   .eos_token_id = 2};

constexpr HfArchitecture kMistral = {.name = "MistralForCausalLM",
                                     .model_type = "mistral",
                                     .bias = Bias::never,
                                     .kv_heads_default = false,
                                     .max_positions = 131072,
                                     .sliding = Sliding::every,
                                     .window = 4096,
                                     .bos_token_id = 1,
                                     .eos_token_id = 2};

constexpr HfArchitecture kQwen2 = {.name = "Qwen2ForCausalLM",
                                   .model_type = "qwen2",
                                   .bias = Bias::qkv,
                                   .kv_heads_default = false,
                                   .max_positions = 32768,
                                   .sliding = Sliding::late,
                                   .window_switch = true,
                                   .window = 4096};

constexpr HfArchitecture kQwen3 = {.name = "Qwen3ForCausalLM",
                                   .model_type = "qwen3",
                                   .qk_norm = true,
                                   .kv_heads_default = false,
                                   .head_dim = 128,
                                   .max_positions = 32768,
                                   .sliding = Sliding::late,
                                   .window_switch = true,
                                   .window = 4096};

constexpr HfArchitecture kGemma = {.name = "GemmaForCausalLM",
                                   .model_type = "gemma",
                                   .scaled_embedding = true,
                                   .unit_offset_norms = true,
                                   .kv_heads_default = false,
                                   .tied = true,
                                   .head_dim = 256,
                                   .max_positions = 8192,
                                   .act = "gelu_pytorch_tanh",
                                   .bos_token_id = 2,
                                   .eos_token_id = 1};

constexpr HfArchitecture kGemma2 = {.name = "Gemma2ForCausalLM",
                                    .model_type = "gemma2",
                                    .post_norms = true,
                                    .scaled_embedding = true,
                                    .unit_offset_norms = true,
                                    .kv_heads_default = false,
                                    .tied = true,
                                    .head_dim = 256,
                                    .max_positions = 8192,
                                    .sliding = Sliding::odd,
                                    .window = 4096,
                                    .act_key = "hidden_activation",
                                    .act = "gelu_pytorch_tanh",
                                    .query_scalar = 256,
                                    .attention_cap = true,
                                    .final_cap = true,
                                    .attention_cap_default = 50,
                                    .final_cap_default = 30,
                                    .bos_token_id = 2,
                                    .eos_token_id = 1};

constexpr HfArchitecture kGemma3 = {.name = "Gemma3ForCausalLM",
                                    .model_type = "gemma3_text",
                                    .qk_norm = true,
                                    .post_norms = true,
                                    .scaled_embedding = true,
                                    .unit_offset_norms = true,
                                    .local_rope = true,
                                    .kv_heads_default = false,
                                    .tied = true,
                                    .head_dim = 256,
                                    .max_positions = 131072,
                                    .rope_theta = 1e6,
                                    .sliding = Sliding::pattern,
                                    .window = 4096,
                                    .act_key = "hidden_activation",
                                    .act = "gelu_pytorch_tanh",
                                    .query_scalar = 256,
                                    .final_cap = true,
                                    .bos_token_id = 2,
                                    .eos_token_id = 1};

constexpr HfArchitecture kPhi3 = {.name = "Phi3ForCausalLM",
                                  .model_type = "phi3",
                                  .bias = Bias::never,
                                  .fused_projections = true,
                                  .partial_rotary = true,
                                  .max_positions = 4096,
                                  .rms_norm_eps = 1e-5,
                                  .sliding = Sliding::every,
                                  .bos_token_id = 1,
                                  .eos_token_id = 32000};

constexpr HfArchitecture kSmolLm3 = {.name = "SmolLM3ForCausalLM",
                                     .model_type = "smollm3",
                                     .reads_mlp_bias = true,
                                     .nope_layers = true,
                                     .kv_heads_default = false,
                                     .tied = true,
                                     .max_positions = 32768,
                                     .rope_theta = 2e6,
                                     .sliding = Sliding::nope,
                                     .window_switch = true,
                                     .bos_token_id = 128000,
                                     .eos_token_id = 128001};

constexpr HfArchitecture kBitNet = {.name = "BitNetForCausalLM",
                                    .model_type = "bitnet",
                                    .sub_norms = true,
                                    .kv_heads_default = false,
                                    .rms_norm_eps = 1e-5,
                                    .rope_theta = 5e5,
                                    .act = "relu2",
                                    .bos_token_id = 128000,
                                    .eos_token_id = 128001};

constexpr HfSwitch kGpt2Switches[] = {{"scale_attn_weights", true},
                                      {"scale_attn_by_inverse_layer_idx", false}};
constexpr HfArchitecture kGpt2 = {.name = "GPT2LMHeadModel",
                                  .model_type = "gpt2",
                                  .bias = Bias::always,
                                  .keys = {.hidden = "n_embd",
                                           .inner = "n_inner",
                                           .layers = "n_layer",
                                           .heads = "n_head",
                                           .positions = "n_positions",
                                           .eps = "layer_norm_epsilon"},
                                  .switches = kGpt2Switches,
                                  .layer_norms = true,
                                  .gated = false,
                                  .learned_positions = true,
                                  .plain_heads = true,
                                  .inner_default = true,
                                  .tied = true,
                                  .max_positions = 1024,
                                  .rms_norm_eps = 1e-5,
                                  .act_key = "activation_function",
                                  .act = "gelu_new",
                                  .bos_token_id = 50256,
                                  .eos_token_id = 50256};

constexpr HfSwitch kOptSwitches[] = {{"do_layer_norm_before", true},
                                     {"enable_bias", true},
                                     {"layer_norm_elementwise_affine", true},
                                     {"_remove_final_layer_norm", false}};
constexpr HfArchitecture kOpt = {
    .name = "OPTForCausalLM",
    .model_type = "opt",
    .bias = Bias::always,
    .keys = {.inner = "ffn_dim", .eps = "", .table_width = "word_embed_proj_dim"},
    .switches = kOptSwitches,
    .layer_norms = true,
    .gated = false,
    .learned_positions = true,
    .plain_heads = true,
    .tied = true,
    .rms_norm_eps = 1e-5,
    .act_key = "activation_function",
    .act = "relu",
    .bos_token_id = 2,
    .eos_token_id = 2};

constexpr HfSwitch kNeoXSwitches[] = {{"attention_bias", true}};
constexpr HfArchitecture kGptNeoX = {
    .name = "GPTNeoXForCausalLM",
    .model_type = "gpt_neox",
    .bias = Bias::always,
    .partial_rotary = true,
    .keys = {.eps = "layer_norm_eps", .rope_theta = "rotary_emb_base", .rotary_part = "rotary_pct"},
    .switches = kNeoXSwitches,
    .layer_norms = true,
    .gated = false,
    .plain_heads = true,
    .residual = ResidualKind::parallel,
    .parallel_key = "use_parallel_residual",
    .rotary_part = 0.25,
    .rms_norm_eps = 1e-5,
    .act = "gelu",
    .bos_token_id = 0,
    .eos_token_id = 2};

constexpr HfSwitch kPhiSwitches[] = {{"qk_layernorm", false}};
constexpr HfArchitecture kPhi = {.name = "PhiForCausalLM",
                                 .model_type = "phi",
                                 .bias = Bias::always,
                                 .partial_rotary = true,
                                 .keys = {.eps = "layer_norm_eps"},
                                 .switches = kPhiSwitches,
                                 .layer_norms = true,
                                 .gated = false,
                                 .head_bias = true,
                                 .residual = ResidualKind::shared_norm,
                                 .rotary_part = 0.5,
                                 .rms_norm_eps = 1e-5,
                                 .act = "gelu_new",
                                 .bos_token_id = 1,
                                 .eos_token_id = 2};

constexpr HfSwitch kStarCoder2Switches[] = {{"use_bias", true}};
constexpr HfArchitecture kStarCoder2 = {.name = "Starcoder2ForCausalLM",
                                        .model_type = "starcoder2",
                                        .bias = Bias::always,
                                        .keys = {.eps = "norm_epsilon"},
                                        .switches = kStarCoder2Switches,
                                        .layer_norms = true,
                                        .gated = false,
                                        .kv_heads_default = false,
                                        .tied = true,
                                        .max_positions = 4096,
                                        .rms_norm_eps = 1e-5,
                                        .sliding = Sliding::every,
                                        .act = "gelu_pytorch_tanh",
                                        .bos_token_id = 50256,
                                        .eos_token_id = 50256};

constexpr std::array kArchitectures = {&kLlama,  &kMistral, &kQwen2,   &kQwen3,   &kGemma,
                                       &kGemma2, &kGemma3,  &kPhi3,    &kSmolLm3, &kBitNet,
                                       &kGpt2,   &kOpt,     &kGptNeoX, &kPhi,     &kStarCoder2};

}  // namespace

const HfArchitecture* find_hf_architecture(std::string_view name) {
  for (const HfArchitecture* row : kArchitectures) {
    if (row->name == name) return row;
  }
  return nullptr;
}

Result<const HfArchitecture*> read_hf_architecture(const ConfigFields& fields) {
  LOOM_TRY(fields.require("architectures"));
  const JsonValue& list = *fields.find("architectures");
  if (list.elements().size() != 1 || !list.elements()[0].is_string()) {
    return fields.bad("architectures", "expected a list of one name");
  }
  const std::string& name = list.elements()[0].text();
  std::vector<std::string> known;
  for (const HfArchitecture* row : kArchitectures) {
    if (row->name == name) return row;
    known.emplace_back(row->name);
  }
  return fields.refuse("architectures", cat(list.elements()[0].describe(),
                                            " is not supported; these are: ", join(known, ", ")));
}

}  // namespace loom::core
