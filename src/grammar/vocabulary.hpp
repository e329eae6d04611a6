// Vocabulary: the bytes of every token of a model as a tree, so that tokens with a common prefix
// are checked together. Immutable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace loom::core::grammar {

class Vocabulary {
 public:
  // tokens[id]: its bytes. An empty one has no text (special tokens); no grammar allows it.
  explicit Vocabulary(std::vector<std::string> tokens);

  // A node of the tree, parents before children. Those below it are [own + 1, end).
  struct Node {
    uint8_t byte = 0;
    uint16_t depth = 0;                        // bytes up to here
    uint32_t end = 0;                          // after the last node below
    uint32_t first_token = 0, last_token = 0;  // of ids(): tokens that end here
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<int32_t>& ids() const { return ids_; }
  const std::string& bytes(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  size_t size() const { return tokens_.size(); }
  uint32_t longest() const { return longest_; }  // bytes of the longest token
  size_t words() const { return (tokens_.size() + 63) / 64; }

 private:
  std::vector<std::string> tokens_;
  std::vector<Node> nodes_;
  std::vector<int32_t> ids_;  // of tokens with bytes, in the order of their bytes
  uint32_t longest_ = 0;
};

}  // namespace loom::core::grammar
