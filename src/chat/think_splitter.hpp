// ThinkSplitter: separates thinking from the answer while the text arrives. Thinking is the text
// between <think> at the beginning of a reply and the first </think>; a template may have opened it
// already. Tags anywhere else are text.
#pragma once

#include <string>
#include <string_view>

namespace loom::core {

class ThinkSplitter {
 public:
  // open: the prompt ends with <think>.
  explicit ThinkSplitter(bool open) : state_(open ? State::thinking : State::begin) {}

  // The text that is certain so far; the views are valid until the next call.
  struct Parts {
    std::string thinking, answer;
  };
  Parts push(std::string_view text);
  Parts finish();

 private:
  enum class State { begin, thinking, after, answer };
  void advance(Parts& parts, bool last);
  bool take_begin(Parts& parts, bool last);
  bool take_thinking(Parts& parts, bool last);

  State state_;
  std::string held_;  // not certain yet
};

// Whether a prompt ends with <think> and blanks.
bool opens_thinking(std::string_view prompt);

}  // namespace loom::core
