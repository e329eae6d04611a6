#include "line_editor.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "../shared/console.hpp"

namespace loom::cli {
namespace {

class PlainLines : public LineEditor {
 public:
  explicit PlainLines(bool person) : person_(person) {}

  Came read(const std::string& prompt, std::string& line) override {
    if (person_) {
      fmt::print(stderr, "{}", prompt);
      std::fflush(stderr);
    }
    line.clear();
    int c = 0;
    while ((c = std::fgetc(stdin)) != EOF && c != '\n') line += static_cast<char>(c);
    if (interrupted()) {
      std::clearerr(stdin);
      return Came::interrupted;
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    return c == EOF && line.empty() ? Came::end : Came::line;
  }
  void remember(const std::string&) override {}

 private:
  bool person_;
};

}  // namespace

#ifndef LOOM_EDIT
std::unique_ptr<LineEditor> LineEditor::for_terminal(const std::string&) {
  return std::make_unique<PlainLines>(true);
}
#endif

std::unique_ptr<LineEditor> LineEditor::for_pipe() {
  return std::make_unique<PlainLines>(false);
}

std::string chat_history_file() {
  std::string folder;
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state != nullptr && state[0] == '/')
    folder = state;
  else if (home != nullptr && home[0] == '/')
    folder = std::string(home) + "/.local/state";
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder + "/loom", error);
  return error ? std::string() : folder + "/loom/chat_history";
}

}  // namespace loom::cli
