// The WordPiece model (Schuster and Nakajima, 2012; as in BERT): takes the longest token of the
// vocabulary from the left; pieces after the first have a prefix ("##"). A word that is too long or
// has no such split is one unknown token.
#pragma once

#include <memory>

#include "text/models/word_model.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class WordPiece : public WordModel {
 public:
  // `where` names the member in messages.
  static Result<std::unique_ptr<WordModel>> make(const WordPieceSpec& spec,
                                                 const std::string& where);
  Status encode(std::string_view word, Budget& budget, Scratch& scratch,
                std::vector<int32_t>& ids) const override;

 private:
  // The longest token at the front of `rest`, and its length in bytes; -1 if there is none.
  int32_t longest(std::string_view rest, bool first, Scratch& scratch, size_t& taken) const;

  std::string unk_token_, prefix_, where_;
  size_t max_characters_ = 0;
  size_t longest_token_ = 0;  // bytes
};

}  // namespace loom::core::text
