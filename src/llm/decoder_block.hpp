// The nodes of a block of a decoder, in order: their layers, their inputs, and the roles of their
// parameters. decoder_grid() makes the layers from this list. decoder_piece() finds the roles in
// it.
#pragma once

#include <string_view>
#include <vector>

#include "layers/core/graph.hpp"
#include "llm/decoder_config.hpp"
#include "llm/roles.hpp"

namespace loom::core {

enum class BlockPart : uint8_t {
  attention_norm,
  attention,
  scan,
  conv,
  attention_post_norm,
  mlp_norm,
  mlp,      // with a gate
  experts,  // a sparse mixture of those
  up,       // up and down: without one
  down,
  mlp_post_norm,
  sum,
};

struct BlockNode {
  BlockPart part = BlockPart::sum;
  int64_t cell = 0;  // l of the cell that has it
  int child = 0;     // its index among the children there
  std::vector<GraphValue> reads =
      {};  // of a node of a graph; a residual runs its children in order
};

// The cells of serial blocks are residuals; the cell of a parallel block is a graph.
inline constexpr int64_t kAttentionCell = 0, kMlpCell = 1, kParallelCell = 2;

// Blocks differ if some have experts and others have not.
std::vector<BlockNode> block_nodes(const DecoderConfig& config, int64_t block);

// The role of the parameter `name` of the layer of a part.
DecoderRole block_role(BlockPart part, std::string_view name);

}  // namespace loom::core
