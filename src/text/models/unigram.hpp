// The Unigram model (Kudo, 2018; as in SentencePiece): of all splits of a word into tokens, the one
// with the largest sum of scores. A character without a token costs more than any token; runs of
// those are one unknown token, or the tokens of their bytes.
#pragma once

#include <array>
#include <memory>

#include "text/models/word_model.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class Unigram : public WordModel {
 public:
  // `where` names the member in messages.
  static Result<std::unique_ptr<WordModel>> make(const UnigramSpec& spec, const std::string& where);
  Status encode(std::string_view word, Budget& budget, Scratch& scratch,
                std::vector<int32_t>& ids) const override;

 private:
  void extend(std::string_view word, size_t at, Scratch& scratch) const;
  Status append(std::string_view piece, std::vector<int32_t>& ids) const;

  std::vector<double> scores_;  // by id
  int32_t unknown_ = -1;
  bool byte_fallback_ = false;
  double unknown_score_ = 0;
  size_t longest_token_ = 0;                // bytes
  std::array<int32_t, 256> byte_tokens_{};  // ids of "<0x00>".."<0xFF>"
  std::string where_;
};

}  // namespace loom::core::text
