// Settings that a state dict does not contain: bare .safetensors files have the names and values of
// tensors, but no activations or strides. Loom does not guess anything that changes numbers: it
// opens such a file only with these settings.
//
//   LoadOptions load;
//   load.state_dict.activation = "tanh";
//   Network net = Network::load("weights.safetensors", load).or_exit();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/tensor.hpp"

namespace loom {

// Other files ignore these options. Errors: unsupported (a missing setting, naming the command-line
// option), invalid_argument (an unknown activation).
struct StateDictOptions {
  std::string activation{};  // between layers: "relu"; "linear" for none; empty: unknown
  Shape input{};             // of one sample, {1, 28, 28}; empty means the first layer's
  int64_t heads = 0;         // query heads of attention; 0 means unknown
  // For convolutions: one value for all, or one for each. Empty means unknown.
  std::vector<int64_t> stride{}, padding{};
  bool assume = false;  // use the usual choice for all unknown settings; notes list them
};

}  // namespace loom
