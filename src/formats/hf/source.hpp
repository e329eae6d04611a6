// A Hugging Face folder as a ModelSource: config.json, model.safetensors (or an index),
// tokenizer.json and friends.
#pragma once

#include <memory>
#include <string>

#include "llm/model_source.hpp"

namespace loom::core {

// Errors: not_found, and those of the reader of each file.
Result<std::unique_ptr<ModelSource>> open_hf_folder(const std::string& folder);

}  // namespace loom::core
