// The pre-tokenizers that GGUF files name (tokenizer.ggml.pre): for each the expressions that split
// text one after the other before bytes become characters, as the Hugging Face tokenizer it stands
// for has them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.hpp"

namespace loom::core {

// U+2581, what SentencePiece writes for " ".
inline constexpr std::string_view kSpace = "\xE2\x96\x81";

struct GgufPre {
  std::string_view names;  // with a space between; the first is what we write
  std::vector<std::string_view> splits;
  bool nfc = false;            // text is normalized first
  bool ignore_merges = false;  // a word that is a token needs no merges
  bool adds_bos = false;       // where tokenizer.ggml.add_bos_token says nothing

  std::string_view name() const { return names.substr(0, names.find(' ')); }
};

// Null: none of that name.
const GgufPre* find_gguf_pre(std::string_view name);
// Puts the steps of a row into `spec`.
void add_gguf_pre(const GgufPre& pre, TokenizerSpec& spec);
// The row that does what a tokenizer of bytes does; null: none.
const GgufPre* recognize_gguf_pre(const TokenizerSpec& spec);

}  // namespace loom::core
