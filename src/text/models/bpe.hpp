// The byte-pair-encoding model: vocabulary, ranked merges, and the rules for characters that the
// vocabulary lacks. Encodes one word at a time; immutable once made.
//
// Ids are those of HF `tokenizers`, whose merge queue this follows to the letter (bpe.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/models/string_table.hpp"
#include "text/models/word_model.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class Bpe : public WordModel {
 public:
  // Checks every id and every token that a merge names, so that encoding needs no checks. `where`
  // names the member in messages.
  static Result<std::unique_ptr<WordModel>> make(const BpeSpec& spec, const std::string& where);

  Status encode(std::string_view word, Budget& budget, Scratch& scratch,
                std::vector<int32_t>& ids) const override;

 private:
  Status add_merge(std::string_view left, std::string_view right, int32_t rank);
  void index_characters();
  int32_t find_character(std::string_view character) const;
  Status add_symbols(std::string_view word, Budget& budget, Scratch& scratch) const;
  bool add_bytes(std::string_view bytes, Scratch& scratch) const;
  Status merge_symbols(Budget& budget, Scratch& scratch) const;
  void offer(Scratch& scratch, int32_t left, int32_t right) const;

  PairTable merges_;
  std::array<int32_t, 0x800> small_characters_{};  // ids of the characters of one and two bytes
  std::array<int32_t, 256> byte_tokens_{};         // ids of "<0x00>".."<0xFF>"
  std::string unk_token_, prefix_, suffix_, where_;
  bool has_unk_ = false, fuse_unk_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace loom::core::text
