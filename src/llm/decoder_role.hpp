// The role of each parameter of a decoder, independent of its name in files. Formats have a table
// of names by role; no code derives a role from a name.
#pragma once

#include <cstdint>
#include <functional>

#include "grid/network.hpp"

namespace loom::core {

enum class DecoderRole : uint8_t {
  token_embedding,
  output_norm,
  head,
  // Roles in a block, in order of use.
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
  attention_post_norm,  // after attention, if a model has four norms per block
  mlp_norm,
  gate,
  up,
  down,
  gate_bias,
  up_bias,
  down_bias,
  mlp_sub_norm,  // between the gated unit and down
  mlp_post_norm,
  // Roles of models with learned positions, or with biases of norms and heads.
  positions,
  output_norm_bias,
  head_bias,
  attention_norm_bias,
  mlp_norm_bias,
};
inline constexpr int kDecoderRoles = static_cast<int>(DecoderRole::mlp_norm_bias) + 1;

struct DecoderPiece {
  DecoderRole role = DecoderRole::head;
  int64_t block = -1;  // -1 means outside the blocks
};

// The role of a parameter of decoder_grid(), by its cell, its index there and its name in the
// layer.
DecoderPiece decoder_piece(const Param& param);

// Calls `each` with every parameter of a decoder_grid(), in the order of Network, without memory
// for weights. Readers use it to list a model's parameters before the network exists.
void each_decoder_param(const GridSpec& grid, const std::function<void(const Param&)>& each);

// Whether it is the token embedding, the positions or the head. These keep at least 8 bits when the
// rest has fewer.
bool is_vocabulary_matrix(const Param& param, int64_t vocab);

}  // namespace loom::core
