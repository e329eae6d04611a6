#include "llm/decoder_role.hpp"

#include "llm/decoder_block.hpp"

namespace loom::core {
namespace {

DecoderRole role_in_block(const Param& param, const DecoderConfig& config) {
  for (const BlockNode& node : block_nodes(config)) {
    if (node.cell == param.cell.l && node.child == param.child)
      return block_role(node.part, param.spec.name);
  }
  return DecoderRole::o;
}

// A parameter of a cell without children: the embedding, the last norm or the head.
DecoderRole outer_role(const Param& param) {
  const std::string_view name = param.spec.name;
  if (param.cell.z == 0)
    return name == "positions" ? DecoderRole::positions : DecoderRole::token_embedding;
  if (param.spec.matrix()) return DecoderRole::head;
  if (name == "bias") return DecoderRole::head_bias;
  return name == "beta" ? DecoderRole::output_norm_bias : DecoderRole::output_norm;
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

DecoderPiece decoder_piece(const Param& param, const DecoderConfig& config) {
  if (param.child < 0) return {outer_role(param)};
  return {role_in_block(param, config), param.cell.z - 1};
}

bool is_vocabulary_matrix(const Param& param, int64_t vocab) {
  if (param.child >= 0) return false;
  const DecoderRole role = outer_role(param);
  if (role == DecoderRole::positions) return true;
  return (role == DecoderRole::token_embedding || role == DecoderRole::head) &&
         param.spec.matrix() && param.spec.shape[0] == vocab;
}

}  // namespace loom::core
