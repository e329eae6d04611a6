#include "llm/gguf_names.hpp"

#include <charconv>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .hf_class = "LlamaForCausalLM", .model_type = "llama", .pairs_rows = true},
    // Written as "llama" too; never found under its own name.
    {.name = "", .hf_class = "MistralForCausalLM", .model_type = "mistral", .pairs_rows = true},
    {.name = "qwen2", .hf_class = "Qwen2ForCausalLM", .model_type = "qwen2", .qkv_bias = true},
    {.name = "qwen3", .hf_class = "Qwen3ForCausalLM", .model_type = "qwen3"},
    {.name = "smollm3",
     .hf_class = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .pairs_rows = true},
    {.name = "gemma", .hf_class = "GemmaForCausalLM", .model_type = "gemma"},
    {.name = "gemma2",
     .hf_class = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .window = true,
     .caps = true,
     .wide_blocks = 46},
    {.name = "gemma3",
     .hf_class = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .window = true,
     .wide_blocks = 62},
    {.name = "phi3",
     .hf_class = "Phi3ForCausalLM",
     .model_type = "phi3",
     .bias = false,
     .window = true,
     .fused = true},
    // The first BitNets (b1.58 large, 3B): SiLU, where the 2B-4T model has squared ReLU.
    {.name = "bitnet",
     .hf_class = "BitNetForCausalLM",
     .model_type = "bitnet",
     .bias = false,
     .act = "silu"},
};

constexpr GgufSize kSizes[] = {
    {"context_length", "max_position_embeddings", &HfConfig::max_positions, true},
    {"embedding_length", "hidden_size", &HfConfig::hidden_size, true},
    {"block_count", "num_hidden_layers", &HfConfig::num_layers, true},
    {"feed_forward_length", "intermediate_size", &HfConfig::intermediate_size, true},
    {"attention.head_count", "num_attention_heads", &HfConfig::num_heads, true},
    {"attention.head_count_kv", "num_key_value_heads", &HfConfig::num_kv_heads, false},
    {"attention.key_length", "head_dim", &HfConfig::head_dim, false},
};

struct GgufName {
  std::string_view hf, gguf;
};
constexpr GgufName kOutside[] = {
    {"model.embed_tokens", "token_embd"}, {"model.norm", "output_norm"}, {"lm_head", "output"}};
constexpr GgufName kInside[] = {{"input_layernorm", "attn_norm"},
                                {"self_attn.q_proj", "attn_q"},
                                {"self_attn.k_proj", "attn_k"},
                                {"self_attn.v_proj", "attn_v"},
                                {"self_attn.o_proj", "attn_output"},
                                {"self_attn.q_norm", "attn_q_norm"},
                                {"self_attn.k_norm", "attn_k_norm"},
                                {"self_attn.attn_sub_norm", "attn_sub_norm"},
                                {"self_attn.qkv_proj", "attn_qkv"},
                                {"pre_feedforward_layernorm", "ffn_norm"},
                                {"post_feedforward_layernorm", "post_ffw_norm"},
                                {"mlp.gate_proj", "ffn_gate"},
                                {"mlp.up_proj", "ffn_up"},
                                {"mlp.gate_up_proj", "ffn_up"},
                                {"mlp.ffn_sub_norm", "ffn_sub_norm"},
                                {"mlp.down_proj", "ffn_down"}};

// Cuts `prefix` off the front of `text`.
bool cut(std::string_view& text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Cuts "12." off the front.
bool cut_number(std::string_view& text, int64_t& number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest == end || *rest != '.' || number < 0) return false;
  text.remove_prefix(static_cast<size_t>(rest + 1 - text.data()));
  return true;
}

// "x.weight" -> "x" and ".weight".
std::string_view cut_kind(std::string_view& text) {
  const size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view kind = text.substr(dot);
  text = text.substr(0, dot);
  return kind;
}

struct TypePair {
  DType dtype;
  std::string_view ggml;
};
constexpr TypePair kTypePairs[] = {
    {DType::f32, "F32"},   {DType::f16, "F16"},     {DType::bf16, "BF16"}, {DType::q4_0, "Q4_0"},
    {DType::q8_0, "Q8_0"}, {DType::mxfp4, "MXFP4"}, {DType::q2_k, "Q2_K"}, {DType::q3_k, "Q3_K"},
    {DType::q4_k, "Q4_K"}, {DType::q5_k, "Q5_K"},   {DType::q6_k, "Q6_K"}, {DType::q4_1, "Q4_1"},
    {DType::q5_0, "Q5_0"}, {DType::q5_1, "Q5_1"}};

}  // namespace

std::span<const GgufArchitecture> gguf_architectures() {
  return kArchitectures;
}

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  for (const GgufArchitecture& row : kArchitectures)
    if (!name.empty() && row.name == name) return &row;
  return nullptr;
}

const GgufArchitecture* find_gguf_architecture(const HfConfig& config) {
  for (const GgufArchitecture& row : kArchitectures)
    if (row.hf_class == config.architecture) return row.name.empty() ? &kArchitectures[0] : &row;
  return nullptr;
}

std::span<const GgufSize> gguf_sizes() {
  return kSizes;
}

std::string gguf_tensor_name(std::string_view hf_name, bool post_norms) {
  std::string_view stem = hf_name;
  const std::string_view kind = cut_kind(stem);
  for (const GgufName& n : kOutside)
    if (n.hf == stem) return cat(n.gguf, kind);
  int64_t layer = 0;
  if (!cut(stem, "model.layers.") || !cut_number(stem, layer)) return {};
  if (stem == "post_attention_layernorm")
    return cat("blk.", layer, post_norms ? ".post_attention_norm" : ".ffn_norm", kind);
  for (const GgufName& n : kInside)
    if (n.hf == stem) return cat("blk.", layer, ".", n.gguf, kind);
  return {};
}

bool is_rotary_tensor(std::string_view hf_name) {
  return hf_name.find(".self_attn.q_proj.") != std::string_view::npos ||
         hf_name.find(".self_attn.k_proj.") != std::string_view::npos;
}

DType dtype_of_ggml(const GgmlType& type) {
  for (const TypePair& pair : kTypePairs)
    if (pair.ggml == type.name) return pair.dtype;
  return type.values > 1 ? DType::f16 : DType::f32;
}

const GgmlType* ggml_of_dtype(DType dtype) {
  for (const TypePair& pair : kTypePairs)
    if (pair.dtype == dtype) return find_ggml_type(pair.ggml);
  return nullptr;
}

}  // namespace loom::core
