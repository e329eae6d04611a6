// The pre-tokenizer of tokenizer.json: a list of steps that split the text into words, which the
// model then encodes one by one. Some steps also rewrite the text (ByteLevel, Metaspace).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/splitting/pattern.hpp"

namespace loom::core::text {

// A slice of PieceList::text.
struct Piece {
  size_t begin = 0;
  size_t end = 0;
  size_t from_zero = 0;  // leading bytes that stem from offset 0 of the original text
  bool at_zero = false;  // it begins there
  int32_t token = -1;    // an added token: its slice is empty and it passes through untouched
};

struct PieceList {
  std::string text;
  std::vector<Piece> pieces;

  std::string_view view(const Piece& piece) const {
    return std::string_view(text).substr(piece.begin, piece.end - piece.begin);
  }
};

// The part of `piece` from `begin` to `end` (offsets inside the piece).
Piece slice(const Piece& piece, size_t begin, size_t end);

class PreTokenizer {
 public:
  static Result<PreTokenizer> make(std::vector<PreTokenizerStep> steps);
  Status apply(PieceList& list, Budget& budget) const;

 private:
  struct Step : PreTokenizerStep {
    Pattern pattern;  // the separator, if it is a pattern
  };
  static Status make_pattern(Step& step);

  static Status apply_step(const Step& step, PieceList& list, Budget& budget);
  static Status find_spans(const Step& step, std::string_view text, Budget& budget,
                           std::vector<Span>& spans);
  static void merge_spans(SplitBehavior behavior, std::vector<Span>& spans);
  static Status split_pieces(const Step& step, PieceList& list, Budget& budget);
  static void prefix_spaces(PieceList& list);
  static void map_bytes(PieceList& list);
  static void mark_spaces(const Step& step, PieceList& list);
  std::vector<Step> steps_;
};

}  // namespace loom::core::text
