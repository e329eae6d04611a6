// Splits a model's reply into text, reasoning and calls, byte by byte. The result does not depend
// on how the reply was cut. It never fails: text that cannot be a call is text, and a call with
// wrong arguments reports that.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "chat/call_reader.hpp"
#include "chat/tool_format.hpp"

namespace loom::core {

struct ReadCall {
  std::string name, arguments, problem;
};

class ReplyReader {
 public:
  enum class Kind { text, reasoning, call, arguments };
  // `call`: the index of the call; -1 for text and reasoning.
  using Sink = std::function<void(Kind kind, std::string_view text, int call)>;

  // `thinking`: the prompt ended inside of reasoning, so the reply begins there.
  ReplyReader(const ToolFormat& format, Tools tools, bool thinking);
  ReplyReader(const ReplyReader&) = delete;  // its readers point at tools_
  ReplyReader& operator=(const ReplyReader&) = delete;
  void feed(std::string_view text, const Sink& sink);
  void finish(const Sink& sink);

  const std::string& text() const { return text_; }
  const std::string& reasoning() const { return reasoning_; }
  const std::vector<ReadCall>& calls() const { return calls_; }

 private:
  enum class Mode { text, reasoning, section, call };
  enum class Mark { think_open, think_close, section, call, pass };

  void step(char c);
  void scan(char c);
  bool applies(Mark mark) const;
  void act(Mark mark);
  void in_section(char c);
  void begin_call();
  void in_call(char c);
  void end_call();
  void back_to_text();
  void say(char c);
  void say_all(std::string_view text);
  void emit(Kind kind, std::string_view text, int call = -1);

  const ToolFormat& format_;
  Tools tools_;
  Mode mode_ = Mode::text;
  std::vector<std::pair<std::string_view, Mark>> marks_;
  std::string held_;   // the possible beginning of a mark
  std::string space_;  // white space that is dropped before a mark
  std::string raw_;    // of a call that is not certain yet
  bool skip_space_ = false, said_ = false;
  bool sure_ = false;  // the call has a name
  std::unique_ptr<CallReader> reader_;
  std::string text_, reasoning_;
  std::vector<ReadCall> calls_;
  const Sink* sink_ = nullptr;
};

}  // namespace loom::core
