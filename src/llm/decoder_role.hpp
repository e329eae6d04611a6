// What each parameter of a decoder is for, whatever a file calls it. Formats have a table of names
// by role; nothing reads a role out of a name.
#pragma once

#include <cstdint>
#include <functional>

#include "grid/network.hpp"

namespace loom::core {

enum class DecoderRole : uint8_t {
  token_embedding,
  output_norm,
  head,
  // Of a block, in the order of their use.
  attention_norm,  // before attention
  q,
  k,
  v,
  o,
  q_bias,
  k_bias,
  v_bias,
  o_bias,
  q_norm,
  k_norm,
  attention_sub_norm,   // between the heads and o
  attention_post_norm,  // after attention, where a model has four norms per block
  mlp_norm,
  gate,
  up,
  down,
  gate_bias,
  up_bias,
  down_bias,
  mlp_sub_norm,  // between the gated unit and down
  mlp_post_norm,
  // Of models with learned positions, or with norms and heads that have biases.
  positions,
  output_norm_bias,
  head_bias,
  attention_norm_bias,
  mlp_norm_bias,
};
inline constexpr int kDecoderRoles = static_cast<int>(DecoderRole::mlp_norm_bias) + 1;

struct DecoderPiece {
  DecoderRole role = DecoderRole::head;
  int64_t block = -1;  // -1: outside of the blocks
};

// Of a parameter of decoder_grid(), by its cell, its place there and its name in the layer.
DecoderPiece decoder_piece(const Param& param);

// Calls `each` with every parameter of a decoder_grid(), in the order that Network has them,
// without memory: for readers that ask what a model is made of before there is a network.
void each_decoder_param(const GridSpec& grid, const std::function<void(const Param&)>& each);

// The token embedding, the positions or the head: they keep at least 8 bits when the rest has
// fewer.
bool is_vocabulary_matrix(const Param& param, int64_t vocab);

}  // namespace loom::core
