// An encoder as a volumetric network: one cell plane z per block; every token is a sample of its
// own, so that ids, positions and types are [T, 1].
//   (0, 0, 0, 0)     Embedding, or a Graph that adds those of positions and types
//   (0, 0, 0, 1)     LayerNorm
//   (1 + b, 0, 0, l) norms after: Residual of MultiHeadAttention, LayerNorm, Residual of two Dense,
//                    LayerNorm. Norms before: Residual of [LayerNorm, MultiHeadAttention], Residual
//                    of [LayerNorm, SwiGLU]
//   (1 + n, 0, 0, 0) LayerNorm, where norms stand before
//   (2 + n, 0, 0, l) a head: Dense, LayerNorm where it has one, Dense to the labels
#pragma once

#include <string>

#include "grid/grid.hpp"
#include "grid/network.hpp"
#include "llm/encoder_config.hpp"

namespace loom::core {

Result<GridSpec> encoder_grid(const EncoderConfig& config);
// Cells before the head.
size_t encoder_body_cells(const Network& network, const EncoderConfig& config);
// Is `network`, which a file describes, that of `config`?
Status check_encoder(const Network& network, const EncoderConfig& config, const std::string& where);

// What each parameter is for, whatever a file calls it. weight and bias of one thing are two roles
// that follow each other.
enum class EncoderRole : uint8_t {
  tokens,
  positions,
  types,
  embedding_norm,
  embedding_norm_bias,
  q,
  q_bias,
  k,
  k_bias,
  v,
  v_bias,
  o,
  o_bias,
  attention_norm,
  attention_norm_bias,
  inner,  // of a plain unit
  inner_bias,
  outer,
  outer_bias,
  gate,  // of a gated one
  up,
  down,
  mlp_norm,
  mlp_norm_bias,
  final_norm,
  final_norm_bias,
  head,
  head_bias,
  head_norm,
  head_norm_bias,
  labels,
  labels_bias,
};
struct EncoderPiece {
  EncoderRole role = EncoderRole::tokens;
  int64_t block = -1;  // -1: outside of the blocks
};
// Of a parameter of encoder_grid(config), by its cell, its place there and its name in the layer.
EncoderPiece encoder_piece(const Param& param, const EncoderConfig& config);
// Is it one of the tables of an encoder? They keep at least 8 bits when the rest has fewer.
bool is_encoder_table(const Param& param);

}  // namespace loom::core
