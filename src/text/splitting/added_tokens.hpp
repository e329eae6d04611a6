// The added tokens of tokenizer.json: strings that become one id each, matched in the text before
// the model runs. At one position the longest one wins. Tokens with `normalized` are
// searched in the normalized text, the others in the original text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/models/word_model.hpp"
#include "text/normalizers/normalizer.hpp"

namespace loom::core::text {

struct AddedToken : AddedTokenSpec {
  std::string spelling;  // for decoding: the content, normalized if `normalized` is set
};

// A set of strings to find in a text, leftmost first, longest first.
class TokenTrie {
 public:
  // Returns false if `text` is in the set already.
  bool insert(std::string_view text, size_t token);
  struct Hit {
    size_t begin = 0, end = 0, token = 0;
  };
  // The leftmost hit at or after `from`; of several there, the longest.
  std::optional<Hit> find(std::string_view text, size_t from) const;
  bool empty() const { return nodes_.empty(); }

 private:
  struct Node {
    int32_t child = -1, sibling = -1;
    int32_t token = -1;
    char byte = 0;
  };
  int32_t step(int32_t node, char byte) const;
  std::array<int32_t, 256> roots_{};
  std::vector<Node> nodes_;
};

// A part of a text: an added token, or the text between two (token == nullptr).
struct TextPart {
  size_t begin = 0, end = 0;
  const AddedToken* token = nullptr;
};

class AddedTokens {
 public:
  // `where` names the list in messages.
  static Result<AddedTokens> make(const std::vector<AddedTokenSpec>& list, const WordModel& model,
                                  const Normalizer& normalizer, const std::string& where);

  // Splits `text` at the tokens with this `normalized`; with `skip_special`, special tokens stay
  // text. Errors: cancelled (Budget::stopped()).
  Status split(std::string_view text, bool normalized, bool skip_special, Budget& budget,
               std::vector<TextPart>& out) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(int32_t id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  Status add(AddedToken token, const WordModel& model, const Normalizer& normalizer,
             const std::string& where);

  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  StringTable by_content_;
  TokenTrie plain_, normalized_;
};

}  // namespace loom::core::text
