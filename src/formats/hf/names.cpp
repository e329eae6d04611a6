#include "formats/hf/names.hpp"

#include <algorithm>
#include <span>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Role = DecoderRole;

// Names of the parts in classes since Llama, without ".weight" or ".bias".
// "post_attention_layernorm" is the norm before the MLP if a block has two norms, and literally
// after attention if there are four.
struct Named {
  DecoderRole role;
  std::string_view name;
};
constexpr Named kLlama[] = {
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
};

// Names that differ in the other classes.
constexpr Named kGpt2[] = {
    {Role::token_embedding, "transformer.wte"},
    {Role::positions, "transformer.wpe"},
    {Role::output_norm, "transformer.ln_f"},
    {Role::attention_norm, "ln_1"},
    {Role::q, "attn.c_attn"},
    {Role::k, "attn.c_attn"},
    {Role::v, "attn.c_attn"},
    {Role::o, "attn.c_proj"},
    {Role::mlp_norm, "ln_2"},
    {Role::up, "mlp.c_fc"},
    {Role::down, "mlp.c_proj"},
};
constexpr Named kOpt[] = {
    {Role::token_embedding, "model.decoder.embed_tokens"},
    {Role::positions, "model.decoder.embed_positions"},
    {Role::output_norm, "model.decoder.final_layer_norm"},
    {Role::attention_norm, "self_attn_layer_norm"},
    {Role::o, "self_attn.out_proj"},
    {Role::mlp_norm, "final_layer_norm"},
    {Role::up, "fc1"},
    {Role::down, "fc2"},
};
constexpr Named kGptNeoX[] = {
    {Role::token_embedding, "gpt_neox.embed_in"},
    {Role::output_norm, "gpt_neox.final_layer_norm"},
    {Role::head, "embed_out"},
    {Role::q, "attention.query_key_value"},
    {Role::k, "attention.query_key_value"},
    {Role::v, "attention.query_key_value"},
    {Role::o, "attention.dense"},
    {Role::mlp_norm, "post_attention_layernorm"},
    {Role::up, "mlp.dense_h_to_4h"},
    {Role::down, "mlp.dense_4h_to_h"},
};
constexpr Named kPhi[] = {
    {Role::output_norm, "model.final_layernorm"},
    {Role::o, "self_attn.dense"},
    {Role::up, "mlp.fc1"},
    {Role::down, "mlp.fc2"},
};
constexpr Named kStarCoder2[] = {
    {Role::mlp_norm, "post_attention_layernorm"},
    {Role::up, "mlp.c_fc"},
    {Role::down, "mlp.c_proj"},
};

// The tensor layout in folders of a class.
struct FolderLayout {
  std::string_view model_type;
  std::span<const Named> names;
  std::string_view block = "model.layers.";
  bool fused = false;            // q, k and v concatenated
  bool by_head = false;          // concatenated for each head
  bool transposed = false;       // matrices of blocks are [in, out]
  int64_t unused_positions = 0;  // rows before that of the first position
};
constexpr FolderLayout kLayouts[] = {
    {.model_type = "gpt2",
     .names = kGpt2,
     .block = "transformer.h.",
     .fused = true,
     .transposed = true},
    {.model_type = "opt", .names = kOpt, .block = "model.decoder.layers.", .unused_positions = 2},
    {.model_type = "gpt_neox",
     .names = kGptNeoX,
     .block = "gpt_neox.layers.",
     .fused = true,
     .by_head = true},
    {.model_type = "phi", .names = kPhi},
    {.model_type = "starcoder2", .names = kStarCoder2},
};
constexpr FolderLayout kPlain = {.model_type = "", .names = {}};

const FolderLayout& layout_of(const DecoderConfig& config) {
  for (const FolderLayout& layout : kLayouts)
    if (layout.model_type == config.model_type) return layout;
  return kPlain;
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

std::string_view find_name(std::span<const Named> names, DecoderRole role) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const Named& named) { return named.role == role; });
  return found == names.end() ? std::string_view() : found->name;
}

std::string_view name_of(DecoderRole role, const DecoderConfig& config, bool fused) {
  const std::string_view own = find_name(layout_of(config).names, role);
  if (!own.empty()) return own;
  if (role == Role::mlp_norm && !config.post_norms)
    return find_name(kLlama, Role::attention_post_norm);
  if (!fused) return find_name(kLlama, role);
  return role == Role::gate || role == Role::up ? "mlp.gate_up_proj" : "self_attn.qkv_proj";
}

}  // namespace

TensorPart hf_tensor(const Param& param, const DecoderConfig& config) {
  const DecoderPiece piece = decoder_piece(param);
  const DecoderRole role = owner_of(piece.role);
  const FolderLayout& layout = layout_of(config);
  const std::string_view kind = role == piece.role ? ".weight" : ".bias";
  TensorPart part;
  part.rows = param.spec.shape[0];
  if (role == Role::positions) part.first_row = layout.unused_positions;
  part.rows += part.first_row;
  if (piece.block < 0) {
    part.name = cat(name_of(role, config, false), kind);
    return part;
  }
  const bool fused = config.fused_projections || layout.fused;
  const FusedRows rows = fused ? fused_rows(piece.role, config) : FusedRows{};
  part.name = cat(layout.block, piece.block, ".", name_of(role, config, rows.total > 0), kind);
  part.transposed = layout.transposed && param.spec.matrix();
  if (rows.total == 0) return part;
  part.first_row = rows.first;
  part.rows = rows.total;
  if (!layout.by_head) return part;
  part.run = config.head_dim;
  part.step = 3 * config.head_dim;
  part.first_row = rows.first / config.num_heads;
  return part;
}

std::string_view hf_blocks(const DecoderConfig& config) {
  return layout_of(config).block;
}

std::string hf_head_name(const DecoderConfig& config) {
  return cat(name_of(Role::head, config, false), ".weight");
}

std::string hf_other_name(const std::string& name, const DecoderConfig& config) {
  if (name == "embed_out.weight") return "lm_head.weight";
  const FolderLayout& layout = layout_of(config);
  const size_t dot = layout.block.find('.');
  const bool has = &layout != &kPlain && name.starts_with(layout.block.substr(0, dot + 1));
  return has ? name.substr(dot + 1) : std::string();
}

}  // namespace loom::core
