// StopMatcher: finds the first of several stop strings in a stream of text. Text that may be the
// beginning of a stop string is buffered until the next piece decides. Pieces and stop strings are
// complete UTF-8, so the output has whole characters too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

class StopMatcher {
 public:
  // An empty stop string, or one that is not UTF-8, is an Error.
  static Result<StopMatcher> create(std::vector<std::string> stops);

  // Takes new text and returns the text that certainly precedes any stop string; valid until the
  // next call.
  std::string_view push(std::string_view text);
  // Ends the text and returns the buffered part, unless a stop string was found.
  std::string_view finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_, out_;
  bool found_ = false;
};

}  // namespace loom::core
