// Reads one call, or one list of calls, in the format of a ToolFormat row, a byte at a time.
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
  // A call begins, with its name; more text of its arguments; the call is complete.
  struct Events {
    std::function<void(std::string name)> name;
    std::function<void(std::string_view text)> arguments;
    std::function<void()> end;
  };
  virtual ~CallReader() = default;
  virtual State step(char c) = 0;
  // Call it at the end of the text: passes on what is possible of an unfinished call.
  virtual void finish() {}
};

// May be null: a row without calls.
std::unique_ptr<CallReader> make_call_reader(const ToolFormat& format, const Tools& tools,
                                             CallReader::Events events);

}  // namespace loom::core
