#include "llm/decoder_role.hpp"

#include <span>

namespace loom::core {
namespace {

// Children of the residual of attention or of the gated unit (decoder.hpp).
constexpr int kBefore = 0, kAfter = 2;

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
                              {"sub_norm", DecoderRole::mlp_sub_norm}};

DecoderRole role_in_block(const Param& param) {
  const bool mlp = param.cell.l == 1;
  if (param.child == kBefore) return mlp ? DecoderRole::mlp_norm : DecoderRole::attention_norm;
  if (param.child == kAfter)
    return mlp ? DecoderRole::mlp_post_norm : DecoderRole::attention_post_norm;
  const std::span<const NamedRole> rows = mlp ? std::span<const NamedRole>(kMlp) : kAttention;
  for (const NamedRole& row : rows)
    if (row.name == param.spec.name) return row.role;
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
  if (param.cell.z == 0) return {DecoderRole::token_embedding};
  return {param.spec.matrix() ? DecoderRole::head : DecoderRole::output_norm};
}

bool is_vocabulary_matrix(const Param& param, int64_t vocab) {
  const DecoderRole role = decoder_piece(param).role;
  return (role == DecoderRole::token_embedding || role == DecoderRole::head) &&
         param.spec.matrix() && param.spec.shape[0] == vocab;
}

}  // namespace loom::core
