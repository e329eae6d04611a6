#include "formats/hf/names.hpp"

#include <algorithm>
#include <span>

#include "base/text.hpp"
#include "families/family.hpp"

namespace loom::core {
namespace {

using Role = DecoderRole;

// Names of the parts in classes since Llama; rows of families have those that differ.
// "post_attention_layernorm" is the norm before the MLP if a block has two norms, and literally
// after attention if there are four.
constexpr PartName kUsual[] = {
    {Role::token_embedding, "model.embed_tokens"},
    {Role::output_norm, "model.norm"},
    {Role::head, "lm_head"},
    {Role::attention_norm, "input_layernorm"},
    {Role::q, "self_attn.q_proj"},
    {Role::k, "self_attn.k_proj"},
    {Role::v, "self_attn.v_proj"},
    {Role::o, "self_attn.o_proj"},
    {Role::q_norm, "self_attn.q_norm"},
    {Role::k_norm, "self_attn.k_norm"},
    {Role::attention_sub_norm, "self_attn.attn_sub_norm"},
    {Role::attention_post_norm, "post_attention_layernorm"},
    {Role::mlp_norm, "pre_feedforward_layernorm"},
    {Role::gate, "mlp.gate_proj"},
    {Role::up, "mlp.up_proj"},
    {Role::down, "mlp.down_proj"},
    {Role::mlp_sub_norm, "mlp.ffn_sub_norm"},
    {Role::mlp_post_norm, "post_feedforward_layernorm"},
    {Role::router, "mlp.gate"},
    {Role::expert_gate, "mlp.experts.#.gate_proj"},
    {Role::expert_up, "mlp.experts.#.up_proj"},
    {Role::expert_down, "mlp.experts.#.down_proj"},
    {Role::choice_bias, "mlp.gate.e_score_correction_bias"},
    {Role::shared_gate, "mlp.shared_experts.gate_proj"},
    {Role::shared_up, "mlp.shared_experts.up_proj"},
    {Role::shared_down, "mlp.shared_experts.down_proj"},
    {Role::shared_router, "mlp.shared_expert_gate"},
};

const FolderNames& folder_of(const DecoderConfig& config) {
  static constexpr FolderNames kPlain;
  const DecoderFamily* family = find_family_of_type(config.model_type);
  return family == nullptr ? kPlain : family->folder;
}

// The part that a bias belongs to; any other role is its own.
DecoderRole owner_of(DecoderRole role) {
  switch (role) {
    case Role::q_bias: return Role::q;
    case Role::k_bias: return Role::k;
    case Role::v_bias: return Role::v;
    case Role::o_bias: return Role::o;
    case Role::gate_bias: return Role::gate;
    case Role::up_bias: return Role::up;
    case Role::down_bias: return Role::down;
    case Role::output_norm_bias: return Role::output_norm;
    case Role::head_bias: return Role::head;
    case Role::attention_norm_bias: return Role::attention_norm;
    case Role::mlp_norm_bias: return Role::mlp_norm;
    default: return role;
  }
}

std::string_view find_name(std::span<const PartName> names, DecoderRole role) {
  const auto found = std::ranges::find(names, role, &PartName::role);
  return found == names.end() ? std::string_view() : found->name;
}

std::string_view name_of(DecoderRole role, const DecoderConfig& config) {
  const std::string_view own = find_name(folder_of(config).names, role);
  if (!own.empty()) return own;
  const bool before_mlp = role == Role::mlp_norm && !config.post_norms;
  return find_name(kUsual, before_mlp ? Role::attention_post_norm : role);
}

}  // namespace

TensorPart hf_tensor(const Param& param, const DecoderConfig& config) {
  const DecoderPiece piece = decoder_piece(param);
  const DecoderRole role = owner_of(piece.role);
  const FolderNames& folder = folder_of(config);
  const bool plain = role == Role::choice_bias;
  const std::string_view kind = plain ? "" : role == piece.role ? ".weight" : ".bias";
  TensorPart part;
  part.rows = param.spec.shape[0];
  if (role == Role::positions) part.first_row = folder.unused_positions;
  part.rows += part.first_row;
  if (piece.block < 0) {
    part.name = cat(name_of(role, config), kind);
    return part;
  }
  const FusedRows rows = folder.fused ? fused_rows(piece.role, config) : FusedRows{};
  part.name = cat(folder.block, piece.block, ".", name_of(role, config), kind);
  part.transposed = folder.transposed && param.spec.matrix();
  if (is_expert_matrix(role) && part.name.find(kNumberMark) == std::string::npos)
    return hf_stacked_tensor(param, config, part.name);
  if (is_expert_matrix(role)) {
    part.tensors = config.experts.count;
    part.rows /= part.tensors;
    return part;
  }
  if (rows.total == 0) return part;
  part.first_row = rows.first;
  part.rows = rows.total;
  if (!folder.by_head) return part;
  part.run = config.head_dim;
  part.step = 3 * config.head_dim;
  part.first_row = rows.first / config.num_heads;
  return part;
}

TensorPart hf_stacked_tensor(const Param& param, const DecoderConfig& config,
                             const std::string& name) {
  const DecoderPiece piece = decoder_piece(param);
  const bool down = piece.role == Role::expert_down;
  TensorPart part;
  part.name = !name.empty() ? name
                            : cat(folder_of(config).block, piece.block, ".mlp.experts.",
                                  down ? "down_proj" : "gate_up_proj");
  part.rows = param.spec.shape[0];
  part.stacked = config.experts.count;
  if (down) return part;
  part.rows *= 2;
  part.run = config.experts.inner;
  part.step = 2 * part.run;
  part.first_row = piece.role == Role::expert_up ? part.run : 0;
  return part;
}

std::string_view hf_blocks(const DecoderConfig& config) {
  return folder_of(config).block;
}

std::string hf_head_name(const DecoderConfig& config) {
  return cat(name_of(Role::head, config), ".weight");
}

std::string hf_other_name(const std::string& name, const DecoderConfig& config) {
  const FolderNames& folder = folder_of(config);
  if (!folder.other_head.empty() && name == hf_head_name(config))
    return cat(folder.other_head, ".weight");
  const size_t dot = folder.block.find('.');
  const bool has = folder.optional_prefix && name.starts_with(folder.block.substr(0, dot + 1));
  return has ? name.substr(dot + 1) : std::string();
}

}  // namespace loom::core
