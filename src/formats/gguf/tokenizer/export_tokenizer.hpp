// The tokenizer, special ids and the chat template as metadata of a GGUF file.
#pragma once

#include "formats/gguf/write.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// If the source has no tokenizer, adds only the ids and the chat template. Loom reads the same
// tokenizer back. Errors: unsupported, naming the field, if llama.cpp would give other ids for
// ordinary text (tokenizer_limits.hpp).
Status write_gguf_tokenizer(const ModelSource& source, GgufMetadata& metadata);

}  // namespace loom::core
