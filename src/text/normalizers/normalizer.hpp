// The normalizer of tokenizer.json: a list of steps that rewrite a piece of the text before it is
// split.
//
// It also tracks how many leading bytes come from offset 0 of the original text. Metaspace with
// prepend_scheme "first" needs that; HF computes it from its alignments.
#pragma once

#include <string>
#include <vector>

#include "text/normalizers/charsmap.hpp"
#include "text/normalizers/unicode.hpp"
#include "text/splitting/pattern.hpp"

namespace loom::core::text {

struct NormalText {
  std::string text;
  size_t from_zero = 0;  // leading bytes that stem from offset 0 of the original text
  bool at_zero = false;  // the piece began at offset 0
};

class Normalizer {
 public:
  static Result<Normalizer> make(std::vector<NormalizerStep> steps);
  Status apply(NormalText& piece, Budget& budget) const;
  bool empty() const { return steps_.empty(); }

 private:
  struct Step : NormalizerStep {
    Pattern pattern;  // find, compiled
    Charsmap map;     // content, read
  };
  static Status apply_step(const Step& step, NormalText& piece, Budget& budget);
  std::vector<Step> steps_;
};

}  // namespace loom::core::text
