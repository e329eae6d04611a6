// Lines from a person or a pipe. On a terminal they can be edited, earlier ones come back with the
// arrow keys, and a text that is pasted is one line whatever breaks it holds: a cover of libedit,
// which line_editor_edit.cpp alone includes. A build without it reads lines as the terminal gives
// them.
#pragma once

#include <memory>
#include <string>

namespace loom::cli {

class LineEditor {
 public:
  enum class Came { line, end, interrupted };

  virtual ~LineEditor() = default;
  // Without the final line break. interrupted: Ctrl-C, which take_interrupt() (console.hpp) still
  // holds; what was typed is gone.
  virtual Came read(const std::string& prompt, std::string& line) = 0;
  // A line that the arrow keys bring back.
  virtual void remember(const std::string& line) = 0;

  // history: the file that keeps them over the days; "": none.
  static std::unique_ptr<LineEditor> for_terminal(const std::string& history);
  static std::unique_ptr<LineEditor> for_pipe();
};

// loom/chat_history in $XDG_STATE_HOME or ~/.local/state, whose folder is made; "": no place for
// it.
std::string chat_history_file();

}  // namespace loom::cli
