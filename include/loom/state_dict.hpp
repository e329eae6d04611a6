// What a state dict without a configuration does not say: bare .safetensors files have the names
// and values of tensors, and neither activations nor strides. Loom guesses nothing that changes
// numbers: it opens such a file only with these answers.
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

// Other files ignore these options. Errors of a missing answer: unsupported, naming the option of
// the program; of an unknown activation: invalid_argument.
struct StateDictOptions {
  std::string activation{};  // between layers: "relu", "tanh"; "linear" for none; "": not known
  Shape input{};             // of one sample, {1, 28, 28}; empty: as the first layer takes it
  int64_t heads = 0;         // query heads of attention; 0: not known
  // Of convolutions: one value for all, or one for each. Empty: not known.
  std::vector<int64_t> stride{}, padding{};
  bool assume = false;  // take the usual choice for everything that is not known; notes list it
};

}  // namespace loom
