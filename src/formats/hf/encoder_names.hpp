// What Hugging Face checkpoints call the pieces of an encoder.
#pragma once

#include <string>
#include <string_view>

#include "llm/decoder_parts.hpp"
#include "llm/encoder.hpp"

namespace loom::core {

// Where a parameter of encoder_grid(config) lies, without the prefix of models with a head
// ("bert."). An empty name: no file holds it, it is zeros.
TensorPart hf_encoder_tensor(const Param& param, const EncoderConfig& config);
// "bert.", which stands before names of all but the head; "": never.
std::string hf_encoder_prefix(const EncoderConfig& config);
// What stands between that and the number of a block: "encoder.layer.".
std::string_view hf_encoder_blocks(const EncoderConfig& config);

}  // namespace loom::core
