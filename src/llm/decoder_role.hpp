// The role of each parameter of a decoder, independent of its name in files. Formats have a table
// of names by role; no code derives a role from a name.
#pragma once

#include <functional>

#include "grid/network.hpp"
#include "llm/roles.hpp"

namespace loom::core {

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

// Whether a parameter has the matrices of all experts of a block, as runs of rows.
bool is_expert_matrix(DecoderRole role);

// Whether a matrix decides which experts run, or how much the shared one counts. These are small,
// and have at least 16 bits.
bool is_router(DecoderRole role);

// Whether it is the token embedding, the positions or the head. These keep at least 8 bits when the
// rest has fewer.
bool is_vocabulary_matrix(const Param& param, int64_t vocab);

}  // namespace loom::core
