// Blocks: layers with a common name that are built from other kinds: squeeze-and-excitation, a
// separable convolution, a stack of recurrent layers. A block is a table of fields and a function
// that makes the layer of other kinds. It is expanded when a description is parsed, so files,
// gradients, devices and other formats never see it.
#pragma once

#include "layers/core/layer.hpp"

namespace loom::core {

std::span<const LayerDef* const> block_table();

// The kind or the block of that name; may be null: there is none.
const LayerDef* find_layer(std::string_view name);
// All names, kinds first, for messages.
std::vector<std::string> layer_names();

}  // namespace loom::core
