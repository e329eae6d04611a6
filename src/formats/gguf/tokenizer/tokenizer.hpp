// The tokenizer of a GGUF file. It supports the models "gpt2" (byte-level BPE with ranked merges)
// and "llama" (SentencePiece: pieces with scores).
#pragma once

#include <optional>

#include "formats/gguf/file.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core {

// The types of tokenizer.ggml.token_type.
enum class GgufToken : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// Loom's own keys: the ids of tokens that absorb the white space before or after them.
constexpr std::string_view kGgufLstrip = "loom.tokenizer.lstrip";
constexpr std::string_view kGgufRstrip = "loom.tokenizer.rstrip";

// The tokenizer.json of the source, if tokens and merges do not contain all of it; it takes
// precedence.
constexpr std::string_view kGgufTokenizerJson = "tokenizer.huggingface.json";
// All ids that end a text, if there are more than GGUF has keys for.
constexpr std::string_view kGgufEnds = "loom.tokenizer.eos_token_ids";
// Cases in which llama.cpp may give other ids: lines for people.
constexpr std::string_view kGgufNotes = "loom.notes";

constexpr size_t kMaxGgufTokens = size_t{1} << 24;
constexpr size_t kMaxGgufPiece = 1024;                    // bytes of a piece with derived merges
constexpr size_t kMaxGgufMergeBytes = size_t{128} << 20;  // of the merges derived

// Unset if the file has no tokenizer. Bytes that are not UTF-8 become U+FFFD. Errors: unsupported
// (another model or pre-tokenizer), bad_file.
Result<std::optional<TokenizerSpec>> read_gguf_tokenizer(const Gguf& gguf);

}  // namespace loom::core
