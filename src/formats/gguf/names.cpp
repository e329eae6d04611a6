#include "formats/gguf/names.hpp"

#include <charconv>

#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr GgufSize kSizes[] = {
    {"context_length", "max_position_embeddings", &DecoderConfig::max_positions, true},
    {"embedding_length", "hidden_size", &DecoderConfig::hidden_size, true},
    {"block_count", "num_hidden_layers", &DecoderConfig::num_layers, true},
    {"feed_forward_length", "intermediate_size", &DecoderConfig::intermediate_size, true},
    {"attention.head_count", "num_attention_heads", &DecoderConfig::num_heads, true},
    {"attention.head_count_kv", "num_key_value_heads", &DecoderConfig::num_kv_heads, false},
    {"attention.key_length", "head_dim", &DecoderConfig::head_dim, false},
};

// The tensor name of each role; names of a block follow "blk.N.".
constexpr std::string_view kGgufNames[kDecoderRoles] = {
    "token_embd.weight",     "output_norm.weight",
    "output.weight",         "attn_norm.weight",
    "attn_q.weight",         "attn_k.weight",
    "attn_v.weight",         "attn_output.weight",
    "attn_q.bias",           "attn_k.bias",
    "attn_v.bias",           "attn_output.bias",
    "attn_q_norm.weight",    "attn_k_norm.weight",
    "attn_sub_norm.weight",  "post_attention_norm.weight",
    "ffn_norm.weight",       "ffn_gate.weight",
    "ffn_up.weight",         "ffn_down.weight",
    "ffn_gate.bias",         "ffn_up.bias",
    "ffn_down.bias",         "ffn_sub_norm.weight",
    "post_ffw_norm.weight",  "position_embd.weight",
    "output_norm.bias",      "output.bias",
    "attn_norm.bias",        "ffn_norm.bias",
    "attn_q_norm.bias",      "attn_k_norm.bias",
    "attn_sinks.weight",     "ffn_gate_inp.weight",
    "ffn_gate_exps.weight",  "ffn_up_exps.weight",
    "ffn_down_exps.weight",  "exp_probs_b.bias",
    "ffn_gate_shexp.weight", "ffn_up_shexp.weight",
    "ffn_down_shexp.weight", "ffn_gate_inp_shexp.weight",
    "ffn_gate_inp.bias",     "ffn_gate_exps.bias",
    "ffn_up_exps.bias",      "ffn_down_exps.bias",
    "attn_q_a.weight",       "attn_q_a_norm.weight",
    "attn_q_b.weight",       "attn_kv_a_mqa.weight",
    "attn_kv_a_norm.weight", "attn_k_b.weight",
    "attn_v_b.weight",
};

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

const DecoderFamily* find_family_in_gguf(const DecoderConfig& config) {
  const DecoderFamily* family = find_family_of_class(config.architecture);
  return family == nullptr ? nullptr
                           : find_family_of_gguf(family->gguf.name, family->experts != nullptr);
}

std::span<const GgufSize> gguf_sizes() {
  return kSizes;
}

TensorPart gguf_tensor(const Param& param, const DecoderConfig& config, const GgufRules& rules) {
  const DecoderPiece piece = decoder_piece(param, config);
  const int64_t rows = param.spec.shape[0];
  const std::string_view name = kGgufNames[static_cast<int>(piece.role)];
  if (piece.block < 0) return {std::string(name), 0, rows};
  if (is_expert_matrix(piece.role)) {
    TensorPart all{cat("blk.", piece.block, ".", name), 0, rows};
    all.stacked = config.experts.count;
    return all;
  }
  const FusedRows part = rules.fused ? fused_rows(piece.role, config) : FusedRows{};
  if (part.total == 0) return {cat("blk.", piece.block, ".", name), 0, rows};
  const bool mlp = name.starts_with("ffn_");
  const std::string_view kind = param.spec.matrix() ? ".weight" : ".bias";
  return {cat("blk.", piece.block, mlp ? ".ffn_up" : ".attn_qkv", kind), part.first, part.total};
}

bool has_paired_rows(const Param& param, const DecoderConfig& config, const GgufRules& rules) {
  using enum DecoderRole;
  const DecoderRole role = decoder_piece(param, config).role;
  return rules.pairs_rows && !rules.fused &&
         (role == q || role == k || role == q_bias || role == k_bias);
}

Shape gguf_shape(const Param& param, const DecoderConfig& config, const TensorPart& part) {
  if (decoder_piece(param, config).role == DecoderRole::shared_router)
    return Shape{param.spec.shape[1]};
  return tensor_shape(part, param.spec.shape);
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
