// Keeps stderr for our own lines while a library speaks that prints by itself: WebGPU libraries and
// the drivers below them do so when they are opened. For the time before threads begin.
#pragma once

#include <cstdio>
#include <string>

namespace loom::cli {

class HeldStderr {
 public:
  HeldStderr();  // does nothing where no temporary file can be made
  ~HeldStderr() { release(); }
  HeldStderr(const HeldStderr&) = delete;
  HeldStderr& operator=(const HeldStderr&) = delete;

  // Gives stderr back, and returns the first line that was written meanwhile; "": none.
  std::string release();

 private:
  std::FILE* kept_ = nullptr;
  int stderr_ = -1;
};

}  // namespace loom::cli
