// The WordPiece model (Schuster and Nakajima, 2012; as in BERT): from the left the longest token
// that the vocabulary has, pieces behind the first with a prefix ("##"). A word that cannot be put
// together, or that is too long, is one unknown token.
#pragma once

#include <memory>

#include "text/tokenizer_spec.hpp"
#include "text/word_model.hpp"

namespace loom::core::text {

class WordPiece : public WordModel {
 public:
  // `where` names the member in messages.
  static Result<std::unique_ptr<WordModel>> make(const WordPieceSpec& spec,
                                                 const std::string& where);
  Status encode(std::string_view word, Budget& budget, Scratch& scratch,
                std::vector<int32_t>& ids) const override;

 private:
  // The longest token at the front of `rest`, and how many bytes of it that takes; -1: none.
  int32_t longest(std::string_view rest, bool first, Scratch& scratch, size_t& taken) const;

  std::string unk_token_, prefix_, where_;
  size_t most_characters_ = 0;
  size_t longest_token_ = 0;  // bytes
};

}  // namespace loom::core::text
