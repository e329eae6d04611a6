// WordModel: turns one word into ids by byte-pair encoding (bpe.hpp), WordPiece (word_piece.hpp) or
// Unigram (unigram.hpp). It owns the vocabulary. Immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "text/budget.hpp"
#include "text/models/string_table.hpp"

namespace loom::core::text {

class WordModel {
 public:
  virtual ~WordModel() = default;

  // Working memory of encode(), reused from word to word.
  struct Scratch {
    struct Symbol {
      int32_t id = 0;
      int32_t previous = -1, next = -1;
      bool alive = true;
    };
    struct Candidate {
      int32_t rank = 0, position = 0, id = 0;
    };
    // Only for Unigram: the best path to a position in the word: its score, and the start and id of
    // its last token.
    struct Best {
      double score = 0;
      int32_t from = -1, id = -1;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
    std::string key;
    std::vector<Best> best_at;
    std::vector<std::pair<size_t, size_t>> pieces;
  };

  // Appends the ids of `word` (valid UTF-8). Errors: bad_file (an unknown token is needed, but
  // there is none), cancelled (Budget::stopped()).
  virtual Status encode(std::string_view word, Budget& budget, Scratch& scratch,
                        std::vector<int32_t>& ids) const = 0;

  const StringTable& vocabulary() const { return vocabulary_; }
  // The token whose id this is.
  std::optional<std::string_view> token(int32_t id) const;

 protected:
  // Errors: bad_file (an id out of range or duplicate, a duplicate token); `where` names the model
  // in messages.
  Status add_vocabulary(const std::vector<std::pair<std::string, int32_t>>& tokens,
                        const std::string& where);

  StringTable vocabulary_;

 private:
  std::unordered_map<int32_t, uint32_t> index_;  // id -> index in vocabulary_
};

}  // namespace loom::core::text
