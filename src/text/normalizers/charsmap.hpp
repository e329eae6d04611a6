// The character map of SentencePiece ("precompiled_charsmap"): a trie of texts and their
// replacements, in the layout of Darts double arrays. HF `tokenizers` applies it to grapheme
// clusters (Unicode Standard Annex 29, extended clusters), which grapheme_end() finds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core::text {

// The end of the cluster that starts at `at`. `text`: valid UTF-8.
size_t grapheme_end(std::string_view text, size_t at);

class Charsmap {
 public:
  // Reads the bytes of a map: the size of the trie, its units, the zero-terminated texts.
  static Result<Charsmap> parse(std::string_view bytes, const std::string& where);
  // The replacement of the shortest text of the map that is a prefix of `text`; may be unset.
  std::optional<std::string_view> find(std::string_view text) const;
  bool empty() const { return units_.empty(); }

 private:
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace loom::core::text
