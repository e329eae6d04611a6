// A library that writes on stderr as soon as it is opened, as Dawn and Vulkan drivers do, and has
// nothing of WebGPU.
#include <unistd.h>

namespace {

__attribute__((constructor)) void speak() {
  constexpr char kText[] = "Warning: no driver here\nsomething else\n";
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) _exit(1);
}

}  // namespace
