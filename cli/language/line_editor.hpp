// Lines from a person or a pipe. On a terminal they can be edited, the arrow keys recall earlier
// ones, and a pasted text is one line whatever line breaks it has. It wraps libedit, which only
// line_editor_edit.cpp includes. A build without it reads lines as the terminal sends them.
#pragma once

#include <memory>
#include <string>

namespace loom::cli {

class LineEditor {
 public:
  enum class Came { line, end, interrupted };

  virtual ~LineEditor() = default;
  // Reads without the final line break. interrupted: Ctrl-C, which take_interrupt() (console.hpp)
  // still reports; the typed text is lost.
  virtual Came read(const std::string& prompt, std::string& line) = 0;
  // Adds a line to the history.
  virtual void remember(const std::string& line) = 0;

  // history: the file that stores them; may be empty.
  static std::unique_ptr<LineEditor> for_terminal(const std::string& history);
  static std::unique_ptr<LineEditor> for_pipe();
};

// loom/chat_history in $XDG_STATE_HOME or ~/.local/state, whose folder is created; empty if there
// is no such folder.
std::string chat_history_file();

}  // namespace loom::cli
