// The character map of SentencePiece ("precompiled_charsmap"): a trie of texts and what becomes of
// each, in the layout of Darts double arrays. And the grapheme clusters to which HF `tokenizers`
// applies it (Unicode Standard Annex 29, extended clusters).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core::text {

// The end of the cluster that begins at `at`. `text`: valid UTF-8.
size_t grapheme_end(std::string_view text, size_t at);

class Charsmap {
 public:
  // Of the bytes of a map: the size of the trie, its units, the texts, each ended by a zero.
  static Result<Charsmap> parse(std::string_view bytes, const std::string& where);
  // What becomes of the shortest text of the map that `text` begins with; none: nothing does.
  std::optional<std::string_view> find(std::string_view text) const;
  bool empty() const { return units_.empty(); }

 private:
  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace loom::core::text
