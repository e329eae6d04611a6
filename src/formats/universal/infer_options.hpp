// Answers that a caller gives about a state dict: see infer.hpp.
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.hpp"

namespace loom::core {

// What a caller knows and the file does not say. An unset field is a guess that changes numbers; it
// is an error unless `assume` is set. Each error names the option of the program.
struct InferOptions {
  Shape input;             // of one sample; rank 0: as the first layer takes it
  int64_t heads = 0;       // query heads of attention; 0: from norms, or a guess
  std::string activation;  // between dense layers and convolutions; "": a guess of relu
  // Of convolutions: one value, or one for each. Empty: a guess of the first usual ones that fit.
  std::vector<int64_t> stride, padding;
  bool assume = false;  // take the guesses; the notes list them
};

}  // namespace loom::core
