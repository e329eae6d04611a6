// The byte-pair-encoding model: vocabulary, ranked merges, and the rules for characters that the
// vocabulary lacks. Encodes one word at a time; immutable once made.
//
// Ids are those of HF `tokenizers`, whose merge queue this follows to the letter (bpe.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/string_table.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class Bpe {
 public:
  // Checks every id and every token that a merge names, so that encoding needs no checks. `where`
  // names the member in messages.
  static Result<Bpe> make(const BpeSpec& spec, const std::string& where);

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
    std::vector<Symbol> symbols;
    std::vector<Candidate> queue;
    std::string key;
  };

  // Appends the ids of `word` (valid UTF-8).
  Status encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

  const StringTable& vocabulary() const { return vocabulary_; }
  // The token whose id this is.
  std::optional<std::string_view> token(int32_t id) const;

 private:
  Status add_vocabulary(const BpeSpec& spec);
  Status add_merge(std::string_view left, std::string_view right, int32_t rank);
  void index_characters();
  int32_t find_character(std::string_view character) const;
  Status add_symbols(std::string_view word, Scratch& scratch) const;
  bool add_bytes(std::string_view bytes, Scratch& scratch) const;
  void merge_symbols(Scratch& scratch) const;
  void offer(Scratch& scratch, int32_t left, int32_t right) const;

  StringTable vocabulary_;
  std::unordered_map<int32_t, uint32_t> index_;  // id -> index in vocabulary_
  PairTable merges_;
  std::array<int32_t, 0x800> small_characters_{};  // ids of the characters of one and two bytes
  std::array<int32_t, 256> byte_tokens_{};         // ids of "<0x00>".."<0xFF>"
  std::string unk_token_, prefix_, suffix_, where_;
  bool has_unk_ = false, fuse_unk_ = false, byte_fallback_ = false, ignore_merges_ = false;
};

}  // namespace loom::core::text
