// The post-processor of tokenizer.json: adds ids around a text, or two (such as beginning of
// sequence), and sets the type of each id. Offsets, which other processors adjust, are not
// supported.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class PostProcessor {
 public:
  // A spec without a template adds nothing. `is_token` says whether an id exists.
  static Result<PostProcessor> make(const TokenizerSpec& spec,
                                    const std::function<bool(int32_t)>& is_token);
  // The ids of the text in their template; without special tokens only those of the text.
  std::vector<int32_t> apply(std::vector<int32_t> text, bool add_special_tokens) const;

  struct Typed {
    std::vector<int32_t> ids, types;
  };
  // The same with types; for two texts if `second` is not null.
  Typed apply(const std::vector<int32_t>& first, const std::vector<int32_t>* second,
              bool add_special_tokens) const;
  // The number of ids that are added to one text, or to two.
  size_t special_tokens(bool pair) const;

 private:
  struct Part {
    int text = -1;  // index of the text; -1 means ids
    int32_t type = 0;
    std::vector<int32_t> ids;
  };
  static Result<std::vector<Part>> make_parts(const std::vector<TemplatePart>& parts,
                                              const std::function<bool(int32_t)>& is_token);
  std::vector<Part> single_ = {{0, 0, {}}};
  std::vector<Part> pair_ = {{0, 0, {}}, {1, 1, {}}};
};

}  // namespace loom::core::text
