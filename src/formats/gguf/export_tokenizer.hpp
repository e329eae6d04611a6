// The tokenizer, special ids and the chat template as metadata of a GGUF file.
#pragma once

#include "formats/gguf/write.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// Adds nothing but the ids and the chat template when the source has no tokenizer. What an added
// token strips beside itself (lstrip, rstrip, single_word) cannot be said and is left out.
// Errors: unsupported (a tokenizer that is neither byte-level BPE with a known pre-tokenizer nor
// SentencePiece BPE).
Status write_gguf_tokenizer(const ModelSource& source, GgufMetadata& metadata);

}  // namespace loom::core
