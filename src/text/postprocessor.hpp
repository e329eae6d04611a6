// The post-processor of tokenizer.json: which ids surround the text (beginning of sequence and the
// like). Only the template for a single text is read; offsets, which the other processors adjust,
// do not exist here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class PostProcessor {
 public:
  // None: a text is its ids. `is_token` says whether an id exists.
  static Result<PostProcessor> make(const std::optional<std::vector<TemplatePart>>& parts,
                                    const std::function<bool(int32_t)>& is_token);
  // The ids of the text inside their template; without special tokens only the text remains.
  std::vector<int32_t> apply(std::vector<int32_t> text, bool add_special_tokens) const;

 private:
  struct Part {
    bool is_text = false;
    std::vector<int32_t> ids;
  };
  bool has_template_ = false;
  std::vector<Part> parts_;
};

}  // namespace loom::core::text
