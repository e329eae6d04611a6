#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace loom::cli {
namespace {

bool shows_colours(int stream) {
  const char* none = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (none != nullptr && *none != 0) return false;
  if (term == nullptr || *term == 0 || std::strcmp(term, "dumb") == 0) return false;
  return isatty(stream) != 0;
}

std::string styled(bool shown, Style style, std::string_view text) {
  constexpr const char* kCodes[] = {"1", "2", "1;31", "34"};  // in the order of Style
  if (!shown) return std::string(text);
  return std::string("\x1b[") + kCodes[static_cast<int>(style)] + "m" + std::string(text) +
         "\x1b[0m";
}

}  // namespace

int terminal_width(int plain) {
  const char* columns = std::getenv("COLUMNS");
  const int named = columns == nullptr ? 0 : std::atoi(columns);
  if (named > 0) return named;
  struct winsize size = {};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  return plain;
}

std::string styled_out(Style style, std::string_view text) {
  return styled(shows_colours(STDOUT_FILENO), style, text);
}

std::string styled_err(Style style, std::string_view text) {
  return styled(shows_colours(STDERR_FILENO), style, text);
}

}  // namespace loom::cli
