#include "llm/decoder_role.hpp"

#include <span>

namespace loom::core {
namespace {

// Children of the residual of attention or of the MLP (decoder.hpp), and the cell of a parallel
// block. There, child 2 is the norm of the MLP.
constexpr int kBefore = 0;
constexpr int64_t kMlpCell = 1, kParallelCell = 2;

struct NamedRole {
  std::string_view name;  // in the layer
  DecoderRole role;
};
constexpr NamedRole kAttention[] = {{"q", DecoderRole::q},
                                    {"k", DecoderRole::k},
                                    {"v", DecoderRole::v},
                                    {"o", DecoderRole::o},
                                    {"q_bias", DecoderRole::q_bias},
                                    {"k_bias", DecoderRole::k_bias},
                                    {"v_bias", DecoderRole::v_bias},
                                    {"o_bias", DecoderRole::o_bias},
                                    {"q_norm", DecoderRole::q_norm},
                                    {"k_norm", DecoderRole::k_norm},
                                    {"sub_norm", DecoderRole::attention_sub_norm}};
constexpr NamedRole kMlp[] = {{"gate", DecoderRole::gate},
                              {"up", DecoderRole::up},
                              {"down", DecoderRole::down},
                              {"gate_bias", DecoderRole::gate_bias},
                              {"up_bias", DecoderRole::up_bias},
                              {"down_bias", DecoderRole::down_bias},
                              {"sub_norm", DecoderRole::mlp_sub_norm},
                              {"router", DecoderRole::router},
                              {"expert_gate", DecoderRole::expert_gate},
                              {"expert_up", DecoderRole::expert_up},
                              {"expert_down", DecoderRole::expert_down},
                              {"choice_bias", DecoderRole::choice_bias},
                              {"shared_gate", DecoderRole::shared_gate},
                              {"shared_up", DecoderRole::shared_up},
                              {"shared_down", DecoderRole::shared_down},
                              {"shared_router", DecoderRole::shared_router}};

DecoderRole norm_role(const Param& param, bool bias) {
  using enum DecoderRole;
  const bool mlp = param.cell.l == kMlpCell;
  if (param.child == kBefore && !mlp) return bias ? attention_norm_bias : attention_norm;
  if (param.child == kBefore || param.cell.l == kParallelCell)
    return bias ? mlp_norm_bias : mlp_norm;
  return mlp ? mlp_post_norm : attention_post_norm;
}

// For an MLP without a gate: children 1 and 2 of its residual, or 3 and 4 of a block.
DecoderRole dense_role(const Param& param, bool bias) {
  using enum DecoderRole;
  if (param.child % 2 == 1) return bias ? up_bias : up;
  return bias ? down_bias : down;
}

DecoderRole role_in_block(const Param& param) {
  const bool mlp = param.cell.l == kMlpCell;
  const std::string_view name = param.spec.name;
  if (name == "gamma" || name == "beta") return norm_role(param, name == "beta");
  if (name == "weight" || name == "bias") return dense_role(param, name == "bias");
  const std::span<const NamedRole> rows = mlp ? std::span<const NamedRole>(kMlp) : kAttention;
  for (const NamedRole& row : rows)
    if (row.name == name) return row.role;
  return mlp ? DecoderRole::down : DecoderRole::o;
}

// `child`: as in Param.
void each_param_of(const LayerConfig& layer, const Coord& cell, int child,
                   const std::function<void(const Param&)>& each) {
  std::vector<ParamSpec> specs;
  if (layer.def->params != nullptr) layer.def->params(layer, specs);
  for (const ParamSpec& spec : specs)
    each({.path = {}, .spec = spec, .cell = cell, .child = child});
  for (size_t i = 0; i < layer.children.size(); ++i)
    each_param_of(layer.children[i], cell, child < 0 ? static_cast<int>(i) : child, each);
}

}  // namespace

void each_decoder_param(const GridSpec& grid, const std::function<void(const Param&)>& each) {
  for (int64_t i = 0; i < grid.size(); ++i) {
    const Cell* cell = grid.cell(i);
    if (cell != nullptr && !cell->shared_with) each_param_of(cell->layer, grid.coord(i), -1, each);
  }
}

DecoderPiece decoder_piece(const Param& param) {
  if (param.child >= 0) return {role_in_block(param), param.cell.z - 1};
  const std::string_view name = param.spec.name;
  if (param.cell.z == 0) {
    return {name == "positions" ? DecoderRole::positions : DecoderRole::token_embedding};
  }
  if (param.spec.matrix()) return {DecoderRole::head};
  if (name == "bias") return {DecoderRole::head_bias};
  return {name == "beta" ? DecoderRole::output_norm_bias : DecoderRole::output_norm};
}

bool is_expert_matrix(DecoderRole role) {
  using enum DecoderRole;
  return role == expert_gate || role == expert_up || role == expert_down;
}

bool is_router(DecoderRole role) {
  return role == DecoderRole::router || role == DecoderRole::shared_router;
}

bool is_vocabulary_matrix(const Param& param, int64_t vocab) {
  const DecoderRole role = decoder_piece(param).role;
  if (role == DecoderRole::positions) return true;
  return (role == DecoderRole::token_embedding || role == DecoderRole::head) &&
         param.spec.matrix() && param.spec.shape[0] == vocab;
}

}  // namespace loom::core
