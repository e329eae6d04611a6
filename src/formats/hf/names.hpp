// What Hugging Face checkpoints call the pieces of a decoder.
#pragma once

#include <string>
#include <string_view>

#include "llm/decoder_parts.hpp"

namespace loom::core {

// Where a parameter of decoder_grid(config) lies.
TensorPart hf_tensor(const Param& param, const DecoderConfig& config);
// What folders call it that were made otherwise: without what stands before it where the class has
// a head, as the class without one has it ("h.0.ln_1.weight"); the head by its name of today. "":
// there is no such name.
std::string hf_other_name(const std::string& name, const DecoderConfig& config);
// What stands before the number of a block: "model.layers.".
std::string_view hf_blocks(const DecoderConfig& config);
// The matrix of the head, which folders of tied models may hold too.
std::string hf_head_name(const DecoderConfig& config);

}  // namespace loom::core
