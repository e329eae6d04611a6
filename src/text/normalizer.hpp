// The normalizer of tokenizer.json: a list of steps that rewrite a piece of the text before it is
// split.
//
// Beside the text it tracks how many leading bytes stem from offset 0 of the original: Metaspace
// with prepend_scheme "first" asks for that, and HF answers it from its alignments.
#pragma once

#include <string>
#include <vector>

#include "text/pattern.hpp"
#include "text/unicode.hpp"

namespace loom::core::text {

struct NormalText {
  std::string text;
  size_t from_zero = 0;  // leading bytes that stem from offset 0 of the original text
  bool at_zero = false;  // the piece began at offset 0
};

class Normalizer {
 public:
  // `node` is the member "normalizer"; null means no steps.
  static Result<Normalizer> parse(const Node& node);
  Status apply(NormalText& piece, Budget& budget) const;
  bool empty() const { return steps_.empty(); }

 private:
  enum class Kind : uint8_t { form, lowercase, replace, prepend, strip };
  struct Step {
    Kind kind = Kind::form;
    NormalForm form = NormalForm::nfc;
    Pattern pattern;
    std::string content;
    bool left = false, right = false;
    std::string where;
  };
  static Result<Step> parse_step(const Node& node);
  static Status apply_step(const Step& step, NormalText& piece, Budget& budget);
  std::vector<Step> steps_;
};

}  // namespace loom::core::text
