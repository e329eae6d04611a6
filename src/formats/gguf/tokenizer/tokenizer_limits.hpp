// The tokenizers that GGUF can express. llama.cpp supports byte-level BPE with a named
// pre-tokenizer, and pieces with scores. An option that would give other ids for ordinary text is
// an error that names the field of tokenizer.json. Options that matter only in rare texts are
// notes, and Loom keeps them in the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.hpp"

namespace loom::core {

// "<0x0A>": a piece for one byte.
bool is_gguf_byte(std::string_view token);

// The post-processor's ids around a text; -1 means none.
struct GgufEnds {
  int32_t bos = -1, eos = -1;
};
// Errors: unsupported (more than one token before or after a text, or one between).
Result<GgufEnds> gguf_ends(const TokenizerSpec& spec);

// Errors: unsupported, naming the field: an option of a byte-level tokenizer, or of one with
// pieces.
Status check_gguf_bytes(const TokenizerSpec& spec);
Status check_gguf_pieces(const TokenizerSpec& spec);

// Cases in which llama.cpp gives other ids than the source: lines for people.
std::vector<std::string> gguf_tokenizer_notes(const TokenizerSpec& spec);

// Whether `back`, read from the tokens and merges of a GGUF file, equals `source`.
bool same_tokenizer(const TokenizerSpec& source, const TokenizerSpec& back);

}  // namespace loom::core
