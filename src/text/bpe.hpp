// The byte-pair-encoding model: vocabulary, ranked merges, and the rules for characters that the
// vocabulary lacks. Encodes one word at a time; immutable after parse.
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

#include "text/node.hpp"
#include "text/string_table.hpp"

namespace loom::core::text {

class Bpe {
 public:
  static Result<Bpe> parse(const Node& model);

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
  Status read_options(const Node& model);
  Status read_vocabulary(const Node& node);
  Status read_ranks(const Node& model, size_t merges, std::vector<int32_t>& ranks) const;
  Status read_merges(const Node& model, const Node& node);
  Status add_merge(std::string_view left, std::string_view right, int32_t rank, const Node& node);
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
