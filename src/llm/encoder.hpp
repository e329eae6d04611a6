// An encoder as a volumetric network: one cell plane z per block. Every token is a separate
// sample, so that ids, positions and types are [T, 1].
//   (0, 0, 0, 0)     Embedding, or a Graph that adds those of positions and types.
//   (0, 0, 0, 1)     LayerNorm.
//   (1 + b, 0, 0, l) norms after: Residual of MultiHeadAttention, LayerNorm, Residual of two Dense,
//                    LayerNorm.
//                    norms before: Residual of [LayerNorm, MultiHeadAttention], Residual of
//                    [LayerNorm, SwiGLU].
//   (1 + n, 0, 0, 0) LayerNorm, if norms come before.
//   (2 + n, 0, 0, l) a head: Dense, LayerNorm if it has one, Dense to the labels.
#pragma once

#include <string>

#include "grid/grid.hpp"
#include "grid/network.hpp"
#include "llm/encoder_config.hpp"
#include "llm/roles.hpp"

namespace loom::core {

Result<GridSpec> encoder_grid(const EncoderConfig& config);
// Cells before the head.
size_t encoder_body_cells(const Network& network, const EncoderConfig& config);
// Checks that `network`, read from a file, is the network of `config`.
Status check_encoder(const Network& network, const EncoderConfig& config, const std::string& where);

struct EncoderPiece {
  EncoderRole role = EncoderRole::tokens;
  int64_t block = -1;  // -1 means outside the blocks
};
// The role of a parameter of encoder_grid(config), by its cell, its index there and its name in the
// layer.
EncoderPiece encoder_piece(const Param& param, const EncoderConfig& config);
// Whether it is a table of an encoder. Tables keep at least 8 bits when the rest has fewer.
bool is_encoder_table(const Param& param);

}  // namespace loom::core
