#include "held_stderr.hpp"

#include <unistd.h>

#include <utility>

namespace loom::cli {

HeldStderr::HeldStderr() {
  std::fflush(stderr);
  kept_ = std::tmpfile();
  if (kept_ == nullptr) return;
  stderr_ = dup(STDERR_FILENO);
  if (stderr_ >= 0) dup2(fileno(kept_), STDERR_FILENO);
}

std::string HeldStderr::release() {
  std::FILE* kept = std::exchange(kept_, nullptr);
  const int old = std::exchange(stderr_, -1);
  if (old >= 0) {
    std::fflush(stderr);
    dup2(old, STDERR_FILENO);
    close(old);
  }
  if (kept == nullptr) return {};
  std::string line;
  std::rewind(kept);
  int c = 0;
  while ((c = std::fgetc(kept)) != EOF && !(c == '\n' && !line.empty())) {
    if (c != '\n') line += static_cast<char>(c);
  }
  std::fclose(kept);
  return line;
}

}  // namespace loom::cli
