#include "grammar/vocabulary.hpp"

#include <algorithm>

namespace loom::core::grammar {
namespace {

// Longer tokens are ignored: no vocabulary has them, and depths stay small.
constexpr size_t kMaxBytes = 4096;

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].empty() && tokens_[i].size() <= kMaxBytes)
      ids_.push_back(static_cast<int32_t>(i));
  }
  std::ranges::sort(ids_, [&](int32_t a, int32_t b) {
    const int order = bytes(a).compare(bytes(b));
    return order < 0 || (order == 0 && a < b);
  });
  std::vector<size_t> path;  // nodes from the root to the end of the last token
  const auto leave = [&](size_t depth) {
    while (path.size() > depth) {
      nodes_[path.back()].end = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  std::string before;
  for (uint32_t i = 0; i < ids_.size(); ++i) {
    const std::string& text = bytes(ids_[i]);
    longest_ = std::max(longest_, static_cast<uint32_t>(text.size()));
    const auto same = static_cast<size_t>(std::ranges::mismatch(before, text).in1 - before.begin());
    leave(same);
    for (size_t at = same; at < text.size(); ++at) {
      path.push_back(nodes_.size());
      nodes_.push_back({static_cast<uint8_t>(text[at]), static_cast<uint16_t>(at + 1), 0, i, i});
    }
    nodes_[path.back()].last_token = i + 1;
    before = text;
  }
  leave(0);
}

}  // namespace loom::core::grammar
