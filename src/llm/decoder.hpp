// A decoder as a volumetric network: one cell plane z per block.
//   (0, 0, 0, 0)     Embedding, with a table of positions if the model has learned positions.
//   (1 + b, 0, 0, 0) Residual of [RMSNorm, MultiHeadAttention], and an RMSNorm if the model has
//                    norms after attention too.
//   (1 + b, 0, 0, 1) Residual of [RMSNorm, SwiGLU], and an RMSNorm likewise.
//   (1 + n, 0, 0, 0) RMSNorm.
//   (1 + n, 0, 0, 1) Dense to the vocabulary, tied to the Embedding if the model says so.
// Blocks with experts have Experts instead of SwiGLU.
// Norms are LayerNorms if the model has those. An MLP without a gate is [Dense, Dense] instead of
// SwiGLU. If attention and MLP both read the block's input, the block is one cell:
//   (1 + b, 0, 0, 2) Graph of norm, attention, the norm of the MLP or the first sum, Dense, Dense,
//                    sums.
#pragma once

#include <string>

#include "grid/grid.hpp"
#include "grid/network.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

Result<GridSpec> decoder_grid(const DecoderConfig& config);

// Checks that `network`, read from a file, is a decoder that sessions can run: ids in, `vocab_size`
// logits out, and the head in its own plane.
Status check_decoder(const Network& network, const DecoderConfig& config, const std::string& where);

// A named shape for benchmarks ("smollm2-135m", "shakespeare", "tiny"); an Error lists the names.
Result<DecoderConfig> shape_config(std::string_view name);

}  // namespace loom::core
