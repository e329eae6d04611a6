// What GGUF can say of a tokenizer. llama.cpp knows byte-level BPE with a pre-tokenizer that has a
// name, and pieces with scores: an option that would give other ids of ordinary text is an error
// that names the field of tokenizer.json. Options that matter in rare texts only are notes, and
// Loom keeps them in the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.hpp"

namespace loom::core {

// "<0x0A>": a piece that stands for one byte.
bool is_gguf_byte(std::string_view token);

// Ids around a text, of the post-processor. -1: none.
struct GgufEnds {
  int32_t bos = -1, eos = -1;
};
// Errors: unsupported (more than one token before or after a text, or one between).
Result<GgufEnds> gguf_ends(const TokenizerSpec& spec);

// Errors: unsupported, by the field: an option of a byte-level tokenizer, or of one of pieces.
Status check_gguf_bytes(const TokenizerSpec& spec);
Status check_gguf_pieces(const TokenizerSpec& spec);

// Where llama.cpp gives other ids than the source: lines for a person.
std::vector<std::string> gguf_tokenizer_notes(const TokenizerSpec& spec);

// Does `back`, read from the tokens and merges of a GGUF file, do what `source` does?
bool same_tokenizer(const TokenizerSpec& source, const TokenizerSpec& back);

}  // namespace loom::core
