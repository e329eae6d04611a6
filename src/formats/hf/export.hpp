// A model of any source written as a Hugging Face folder: config.json, model.safetensors under the
// names of `transformers`, tokenizer.json, tokenizer_config.json and the chat template.
#pragma once

#include <optional>
#include <string>

#include "llm/model_source.hpp"

namespace loom::core {

// `dtype`: f32, f16 or bf16; unset: each tensor as the source has it, f32 for what such a file
// cannot hold. Makes the folder; config.json is written last, so that a folder that is cut short is
// no model. Errors: unsupported (another dtype), and those of the source and the files.
Status write_hf_folder(const std::string& folder, const ModelSource& source,
                       std::optional<DType> dtype);

}  // namespace loom::core
