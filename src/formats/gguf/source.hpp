// A GGUF file as a ModelSource: metadata as configuration and tokenizer, tensors under decoder
// roles, rows of q and k in the order of Hugging Face checkpoints.
#pragma once

#include <memory>
#include <string>

#include "io/files/file_ref.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// Errors: those of Gguf::open, read_gguf_config and read_gguf_tokenizer; unsupported (an
// architecture, or a tensor that no parameter of the decoder reads).
Result<std::unique_ptr<ModelSource>> open_gguf(const FileRef& path);

}  // namespace loom::core
