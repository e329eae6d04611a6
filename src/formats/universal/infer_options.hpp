// Settings that a caller provides for a state dict: see infer.hpp.
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.hpp"

namespace loom::core {

// Settings that the file does not contain. An unset field is a guess that changes numbers. It is an
// error unless `assume` is set. Each error names the command-line option.
struct InferOptions {
  Shape input;             // of one sample; rank 0 means the first layer's
  int64_t heads = 0;       // query heads of attention; 0 means from norms, or a guess
  std::string activation;  // between dense layers and convolutions; empty means relu, as a guess
  // For convolutions: one value, or one for each. If empty, the first usual ones that fit are
  // guessed.
  std::vector<int64_t> stride, padding;
  bool assume = false;  // take the guesses; the notes list them
};

}  // namespace loom::core
