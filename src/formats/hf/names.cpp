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
    {Role::sinks, "self_attn.sinks", true},
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
    {Role::choice_bias, "mlp.gate.e_score_correction_bias", true},
    {Role::shared_gate, "mlp.shared_experts.gate_proj"},
    {Role::shared_up, "mlp.shared_experts.up_proj"},
    {Role::shared_down, "mlp.shared_experts.down_proj"},
    {Role::shared_router, "mlp.shared_expert_gate"},
    {Role::q_down, "self_attn.q_a_proj"},
    {Role::q_down_norm, "self_attn.q_a_layernorm"},
    {Role::q_up, "self_attn.q_b_proj"},
    {Role::kv_down, "self_attn.kv_a_proj_with_mqa"},
    {Role::kv_down_norm, "self_attn.kv_a_layernorm"},
    {Role::k_up, "self_attn.kv_b_proj"},
    {Role::v_up, "self_attn.kv_b_proj"},
    {Role::mixer_in, "mixer.in_proj"},
    {Role::mixer_conv, "mixer.conv1d"},
    {Role::mixer_select, "mixer.x_proj"},
    {Role::mixer_step, "mixer.dt_proj"},
    {Role::mixer_step_bias, "mixer.dt_bias", true},
    {Role::mixer_rates, "mixer.A_log", true},
    {Role::mixer_through, "mixer.D", true},
    {Role::mixer_norm, "mixer.norm"},
    {Role::mixer_out, "mixer.out_proj"},
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
    case Role::q_norm_bias: return Role::q_norm;
    case Role::k_norm_bias: return Role::k_norm;
    case Role::router_bias: return Role::router;
    case Role::mixer_in_bias: return Role::mixer_in;
    case Role::mixer_conv_bias: return Role::mixer_conv;
    case Role::mixer_out_bias: return Role::mixer_out;
    default: return role;
  }
}

const PartName* find_name(std::span<const PartName> names, DecoderRole role) {
  const auto found = std::ranges::find(names, role, &PartName::role);
  return found == names.end() ? nullptr : &*found;
}

// The name without its ending.
PartName part_name(DecoderRole role, const DecoderConfig& config) {
  const FolderNames& folder = folder_of(config);
  const bool parallel = config.residual == ResidualKind::parallel;
  for (const auto names :
       {parallel ? folder.parallel_names : std::span<const PartName>(), folder.names}) {
    if (const PartName* own = find_name(names, role)) return *own;
  }
  const bool before_mlp = role == Role::mlp_norm && !config.post_norms;
  const PartName* usual = find_name(kUsual, before_mlp ? Role::attention_post_norm : role);
  return usual == nullptr ? PartName{role, {}} : *usual;
}

std::string_view name_of(DecoderRole role, const DecoderConfig& config) {
  return part_name(role, config).name;
}

// Rows of q, k and v in a tensor that has them by head of keys and values, or in shards.
void set_runs(const FolderNames& folder, const DecoderConfig& config, DecoderRole role,
              TensorPart& part) {
  if (folder.shards > 0) {  // q, v, k
    part.run = config.hidden_size / folder.shards;
    part.step = 3 * part.run;
    part.first_row = (role == Role::q ? 0 : role == Role::v ? 1 : 2) * part.run;
    return;
  }
  const int64_t group = config.num_heads / config.num_kv_heads * config.head_dim;
  const bool q = role == Role::q;
  part.run = q ? group : config.head_dim;
  part.step = group + 2 * config.head_dim;
  part.first_row = q ? 0 : group + (role == Role::v ? config.head_dim : 0);
}

// The rows of a parameter in a tensor that has several of them.
void set_fused(const FolderNames& folder, const DecoderConfig& config, DecoderRole role,
               TensorPart& part) {
  const FusedRows rows = fused_rows(role, config);
  if (rows.total == 0) return;
  part.first_row = rows.first;
  part.rows = rows.total;
  const DecoderRole owner = owner_of(role);
  const bool qkv = owner == Role::q || owner == Role::k || owner == Role::v;
  if (qkv && (folder.by_group || folder.shards > 0)) set_runs(folder, config, owner, part);
}

// Whether q, k and v are one tensor, or gate and up.
bool is_fused(DecoderRole role, const DecoderConfig& config) {
  if (role == Role::shared_gate || role == Role::shared_up)
    return name_of(Role::shared_gate, config) == name_of(Role::shared_up, config);
  const bool mlp = role == Role::gate || role == Role::up;
  return name_of(mlp ? Role::gate : Role::q, config) == name_of(mlp ? Role::up : Role::k, config);
}

// Rows of latent attention. kv_b_proj has the unrotated part of a key and the value of each head.
void set_latent(const FolderNames& folder, const DecoderConfig& c, DecoderRole role,
                TensorPart& part) {
  const int64_t plain = c.head_dim - c.rope_width, both = plain + c.value_dim;
  if (role == Role::k_up) {
    part.transposed = true;
    part.stacked = c.num_heads;
    part.columns = both;
  } else if (role == Role::v_up) {
    part.rows = c.num_heads * both;
    part.run = c.value_dim;
    part.step = both;
    part.first_row = plain;
  } else if (folder.pairs_rows && role != Role::q_down) {
    part.unrotated = role == Role::kv_down ? c.latent : plain;
    part.rotated = c.rope_width;
    part.head = part.unrotated + part.rotated;
  }
}

bool is_latent_matrix(DecoderRole role, const DecoderConfig& config) {
  if (config.latent == 0) return false;
  return role == Role::q || role == Role::q_up || role == Role::kv_down || role == Role::k_up ||
         role == Role::v_up;
}

bool is_expert_bias(DecoderRole role) {
  return role == Role::expert_gate_bias || role == Role::expert_up_bias ||
         role == Role::expert_down_bias;
}

// The rows of the biases of all experts in [experts, rows of one], as those of the matrices.
TensorPart expert_bias_tensor(const Param& param, const DecoderConfig& config, TensorPart part) {
  const DecoderRole role = decoder_piece(param, config).role;
  part.split = config.hidden_size;
  if (role == Role::expert_down_bias) return part;
  part.rows *= 2;
  part.split = 2 * config.experts.inner;
  part.run = folder_of(config).paired_gates ? 1 : config.experts.inner;
  part.step = 2 * part.run;
  part.first_row = role == Role::expert_up_bias ? part.run : 0;
  return part;
}

}  // namespace

TensorPart hf_tensor(const Param& param, const DecoderConfig& config) {
  const DecoderPiece piece = decoder_piece(param, config);
  DecoderRole role = owner_of(piece.role);
  // Without heads, the bias of the steps is that of their projection.
  if (role == Role::mixer_step_bias && config.scan.heads == 0) role = Role::mixer_step;
  const FolderNames& folder = folder_of(config);
  const bool bare = part_name(role, config).bare;
  const std::string_view kind = bare ? "" : role == piece.role ? ".weight" : ".bias";
  TensorPart part;
  part.rows = param.spec.shape[0];
  if (role == Role::positions) part.first_row = folder.unused_positions;
  part.rows += part.first_row;
  if (piece.block < 0) {
    part.name = cat(name_of(role, config), kind);
    return part;
  }
  part.name = cat(folder.block, piece.block, ".", name_of(role, config), kind);
  part.transposed = folder.transposed && param.spec.matrix();
  if (role == piece.role && role == Role::mixer_conv) {
    const bool conv = config.layer(piece.block).mixer == BlockMixer::conv;
    part.split = conv ? config.conv.kernel : config.scan.kernel;
    part.split_axis = true;
    return part;
  }
  if (role == Role::mixer_rates && config.scan.heads == 0) {
    part.split = config.scan.state;
    return part;
  }
  if (is_expert_matrix(role) && part.name.find(kNumberMark) == std::string::npos)
    return hf_stacked_tensor(param, config, part.name);
  if (is_expert_matrix(role)) {
    part.tensors = config.experts.count;
    part.rows /= part.tensors;
    return part;
  }
  if (role == Role::choice_bias && folder.choice_bias_row) part.split = part.rows;
  if (is_latent_matrix(role, config)) {
    set_latent(folder, config, role, part);
    return part;
  }
  if (is_expert_bias(role)) return expert_bias_tensor(param, config, std::move(part));
  if (is_fused(role, config)) set_fused(folder, config, piece.role, part);
  const bool norm = role == Role::q_norm || role == Role::k_norm;
  if (norm && folder.split_qk_norms) part.split = config.head_dim;
  if (folder.pairs_rows && (norm || role == Role::q || role == Role::k)) {
    part.head = config.head_dim;
    part.rotated = config.rope_width > 0 ? config.rope_width : config.head_dim;
  }
  return part;
}

TensorPart hf_stacked_tensor(const Param& param, const DecoderConfig& config,
                             const std::string& name) {
  const DecoderPiece piece = decoder_piece(param, config);
  const bool down = piece.role == Role::expert_down;
  TensorPart part;
  part.name = !name.empty() ? name
                            : cat(folder_of(config).block, piece.block, ".mlp.experts.",
                                  down ? "down_proj" : "gate_up_proj");
  const FolderNames& folder = folder_of(config);
  part.rows = param.spec.shape[0];
  part.stacked = config.experts.count;
  part.transposed = !name.empty() && folder.transposed_experts;
  if (down) return part;
  part.rows *= 2;
  part.run = !name.empty() && folder.paired_gates ? 1 : config.experts.inner;
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
