// The pre-tokenizers that GGUF files name (tokenizer.ggml.pre). Each has the expressions that split
// text in order, before bytes become characters. They are those of the corresponding Hugging Face
// tokenizer.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.hpp"

namespace loom::core {

// U+2581, SentencePiece's character for " ".
inline constexpr std::string_view kSpace = "\xE2\x96\x81";

struct GgufPre {
  std::string_view names;  // separated by spaces; the first is written to files
  std::vector<std::string_view> splits;
  bool nfc = false;            // text is normalized first
  bool ignore_merges = false;  // a word that is a token needs no merges
  bool adds_bos = false;       // the default of tokenizer.ggml.add_bos_token

  std::string_view name() const { return names.substr(0, names.find(' ')); }
};

// May return null.
const GgufPre* find_gguf_pre(std::string_view name);
// Adds the steps of a row to `spec`.
void add_gguf_pre(const GgufPre& pre, TokenizerSpec& spec);
// The row that equals a byte-level tokenizer; may be null.
const GgufPre* recognize_gguf_pre(const TokenizerSpec& spec);

}  // namespace loom::core
