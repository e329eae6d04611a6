// A model of any source written as a Hugging Face folder: config.json, model.safetensors under the
// names of `transformers`, tokenizer.json, tokenizer_config.json and the chat template.
#pragma once

#include <optional>
#include <string>

#include "llm/model_source.hpp"

namespace loom::core {

// `dtype`: f32, f16 or bf16; unset means each tensor as in the source, or f32 if such a file cannot
// hold it. The folder appears, or replaces an existing one, when it is complete (AtomicFolder).
// Other files of an existing folder (README.md, LICENSE) stay; a subfolder is an error. Errors:
// unsupported (another dtype), and those of the source and the files.
Status write_hf_folder(const std::string& path, const ModelSource& source,
                       std::optional<DType> dtype);

}  // namespace loom::core
