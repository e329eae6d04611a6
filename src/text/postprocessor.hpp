// The post-processor of tokenizer.json: which ids surround a text, or two (beginning of sequence
// and the like), and of which type each id is. Offsets, which other processors adjust, do not exist
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class PostProcessor {
 public:
  // A spec without a template: texts are their ids. `is_token` says whether an id exists.
  static Result<PostProcessor> make(const TokenizerSpec& spec,
                                    const std::function<bool(int32_t)>& is_token);
  // The ids of the text inside their template; without special tokens only the text remains.
  std::vector<int32_t> apply(std::vector<int32_t> text, bool add_special_tokens) const;

  struct Typed {
    std::vector<int32_t> ids, types;
  };
  // The same with types; of two texts where `second` is not null.
  Typed apply(const std::vector<int32_t>& first, const std::vector<int32_t>* second,
              bool add_special_tokens) const;
  // Ids that stand beside one text, or two.
  size_t special_tokens(bool pair) const;

 private:
  struct Part {
    int text = -1;  // which of the texts; -1: ids
    int32_t type = 0;
    std::vector<int32_t> ids;
  };
  static Result<std::vector<Part>> make_parts(const std::vector<TemplatePart>& parts,
                                              const std::function<bool(int32_t)>& is_token);
  std::vector<Part> single_ = {{0, 0, {}}};
  std::vector<Part> pair_ = {{0, 0, {}}, {1, 1, {}}};
};

}  // namespace loom::core::text
