// Reads one call, or one list of calls, as a row of ToolFormat describes it, a byte at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "chat/tool_format.hpp"

namespace loom::core {

class CallReader {
 public:
  enum class State { more, done, bad };
  // A call begins, with its name; more of the text of its arguments; the call is whole.
  struct Events {
    std::function<void(std::string name)> name;
    std::function<void(std::string_view text)> arguments;
    std::function<void()> end;
  };
  virtual ~CallReader() = default;
  virtual State step(char c) = 0;
  // No more text comes: gives what can be given of a call that has begun.
  virtual void finish() {}
};

// Null for a row without calls.
std::unique_ptr<CallReader> make_call_reader(const ToolFormat& format, const Tools& tools,
                                             CallReader::Events events);

}  // namespace loom::core
