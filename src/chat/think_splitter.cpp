#include "chat/think_splitter.hpp"

#include <algorithm>

namespace loom::core {
namespace {

constexpr std::string_view kOpen = "<think>";
constexpr std::string_view kClose = "</think>";
constexpr std::string_view kBlanks = " \t\r\n";

// The longest end of `text` that may be the beginning of `tag`.
size_t beginning_of_tag(std::string_view text, std::string_view tag) {
  for (size_t length = std::min(text.size(), tag.size() - 1); length > 0; --length)
    if (tag.starts_with(text.substr(text.size() - length))) return length;
  return 0;
}

}  // namespace

bool opens_thinking(std::string_view prompt) {
  const size_t last = prompt.find_last_not_of(kBlanks);
  return last != prompt.npos && prompt.substr(0, last + 1).ends_with(kOpen);
}

ThinkSplitter::Parts ThinkSplitter::push(std::string_view text) {
  held_ += text;
  Parts parts;
  advance(parts, false);
  return parts;
}

ThinkSplitter::Parts ThinkSplitter::finish() {
  Parts parts;
  advance(parts, true);
  return parts;
}

bool ThinkSplitter::take_begin(Parts& parts, bool last) {
  const size_t first = held_.find_first_not_of(kBlanks);
  if (first == held_.npos && !last) return false;
  const std::string_view rest = std::string_view(held_).substr(std::min(first, held_.size()));
  if (rest.starts_with(kOpen)) {
    held_.erase(0, held_.size() - rest.size() + kOpen.size());
    state_ = State::thinking;
    return true;
  }
  if (kOpen.starts_with(rest) && !last) return false;
  state_ = State::answer;
  parts.answer += held_;
  held_.clear();
  return false;
}

bool ThinkSplitter::take_thinking(Parts& parts, bool last) {
  const size_t close = held_.find(kClose);
  if (close != held_.npos) {
    parts.thinking += held_.substr(0, close);
    held_.erase(0, close + kClose.size());
    state_ = State::after;
    return true;
  }
  const size_t kept = last ? 0 : beginning_of_tag(held_, kClose);
  parts.thinking += held_.substr(0, held_.size() - kept);
  held_.erase(0, held_.size() - kept);
  return false;
}

void ThinkSplitter::advance(Parts& parts, bool last) {
  if (state_ == State::begin && !take_begin(parts, last)) return;
  if (state_ == State::thinking && !take_thinking(parts, last)) return;
  if (state_ == State::after) {
    const size_t first = held_.find_first_not_of(kBlanks);
    held_.erase(0, std::min(first, held_.size()));
    if (held_.empty()) return;
    state_ = State::answer;
  }
  if (state_ == State::answer) {
    parts.answer += held_;
    held_.clear();
  }
}

}  // namespace loom::core
