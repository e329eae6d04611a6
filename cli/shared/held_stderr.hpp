// Captures stderr while a library prints by itself: WebGPU libraries and their drivers do so when
// they are opened. Use it before threads start.
#pragma once

#include <cstdio>
#include <string>

namespace loom::cli {

class HeldStderr {
 public:
  HeldStderr();  // does nothing if no temporary file can be created
  ~HeldStderr() { release(); }
  HeldStderr(const HeldStderr&) = delete;
  HeldStderr& operator=(const HeldStderr&) = delete;

  // Restores stderr, and returns the first captured line; may be empty.
  std::string release();

 private:
  std::FILE* kept_ = nullptr;
  int stderr_ = -1;
};

}  // namespace loom::cli
