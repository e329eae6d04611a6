// Names of the parts of an encoder in Hugging Face checkpoints.
#pragma once

#include <string>
#include <string_view>

#include "llm/decoder_parts.hpp"
#include "llm/encoder.hpp"

namespace loom::core {

// The tensor of a parameter of encoder_grid(config), without the prefix of models with a head
// ("bert."). An empty name means that no file has it and it is zero.
TensorPart hf_encoder_tensor(const Param& param, const EncoderConfig& config);
// The prefix of all names except the head's, "bert."; may be empty.
std::string hf_encoder_prefix(const EncoderConfig& config);
// The part between that prefix and the number of a block: "encoder.layer.".
std::string_view hf_encoder_blocks(const EncoderConfig& config);

}  // namespace loom::core
