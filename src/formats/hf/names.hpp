// Names of the parts of a decoder in Hugging Face checkpoints.
#pragma once

#include <string>
#include <string_view>

#include "llm/decoder_parts.hpp"

namespace loom::core {

// The tensor of a parameter of decoder_grid(config).
TensorPart hf_tensor(const Param& param, const DecoderConfig& config);
// The tensor that has the matrices of all experts of a block: gate and up of each expert one after
// the other, or down. An empty name: that of transformers 5.
TensorPart hf_stacked_tensor(const Param& param, const DecoderConfig& config,
                             const std::string& name = {});
// An alternative name: without the prefix of a class with a head ("h.0.ln_1.weight"), or the head's
// current name. Empty if there is none.
std::string hf_other_name(const std::string& name, const DecoderConfig& config);
// The prefix of the number of a block: "model.layers.".
std::string_view hf_blocks(const DecoderConfig& config);
// The matrix of the head, which folders of tied models may have too.
std::string hf_head_name(const DecoderConfig& config);

}  // namespace loom::core
