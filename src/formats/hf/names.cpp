#include "formats/hf/names.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

// By role. "post_attention_layernorm" is the norm before the gated unit where a block has two
// norms, and what it says where there are four.
constexpr std::string_view kHfNames[kDecoderRoles] = {
    "model.embed_tokens.weight",
    "model.norm.weight",
    "lm_head.weight",
    "input_layernorm.weight",
    "self_attn.q_proj.weight",
    "self_attn.k_proj.weight",
    "self_attn.v_proj.weight",
    "self_attn.o_proj.weight",
    "self_attn.q_proj.bias",
    "self_attn.k_proj.bias",
    "self_attn.v_proj.bias",
    "self_attn.o_proj.bias",
    "self_attn.q_norm.weight",
    "self_attn.k_norm.weight",
    "self_attn.attn_sub_norm.weight",
    "post_attention_layernorm.weight",
    "pre_feedforward_layernorm.weight",
    "mlp.gate_proj.weight",
    "mlp.up_proj.weight",
    "mlp.down_proj.weight",
    "mlp.gate_proj.bias",
    "mlp.up_proj.bias",
    "mlp.down_proj.bias",
    "mlp.ffn_sub_norm.weight",
    "post_feedforward_layernorm.weight",
};

std::string_view name_in_block(DecoderRole role, const DecoderConfig& config, bool fused) {
  using enum DecoderRole;
  if (role == mlp_norm && !config.post_norms)
    return kHfNames[static_cast<int>(attention_post_norm)];
  if (!fused) return kHfNames[static_cast<int>(role)];
  return role == gate || role == up ? "mlp.gate_up_proj.weight" : "self_attn.qkv_proj.weight";
}

}  // namespace

TensorPart hf_tensor(const Param& param, const DecoderConfig& config) {
  const DecoderPiece piece = decoder_piece(param);
  const int64_t rows = param.spec.shape[0];
  if (piece.block < 0) return {std::string(kHfNames[static_cast<int>(piece.role)]), 0, rows};
  const FusedRows part = config.fused_projections ? fused_rows(piece.role, config) : FusedRows{};
  const bool fused = part.total > 0;
  return {cat("model.layers.", piece.block, ".", name_in_block(piece.role, config, fused)),
          part.first, fused ? part.total : rows};
}

}  // namespace loom::core
