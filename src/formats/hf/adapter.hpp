// Adapters of PEFT: a folder with adapter_config.json and adapter_model.safetensors.
#pragma once

#include <string>

#include "llm/adapters.hpp"
#include "llm/decoder_config.hpp"

namespace loom::core {

// Reads a LoRA for a decoder. Its scale is multiplied by `factor`. Errors: not_found; bad_file;
// unsupported, naming the setting (DoRA, trained biases, further trained modules) or the tensor
// that no weight of the decoder takes.
Result<ModelAdapter> read_peft_adapter(const std::string& folder, const DecoderConfig& config,
                                       double factor);

}  // namespace loom::core
