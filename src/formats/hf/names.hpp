// What Hugging Face checkpoints call the pieces of a decoder.
#pragma once

#include "llm/decoder_parts.hpp"

namespace loom::core {

// Where a parameter of decoder_grid(config) lies.
TensorPart hf_tensor(const Param& param, const DecoderConfig& config);

}  // namespace loom::core
