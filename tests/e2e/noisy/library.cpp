// A library that writes to stderr when it is opened, like Dawn and Vulkan drivers, and has no
// WebGPU functions.
#include <unistd.h>

namespace {

__attribute__((constructor)) void speak() {
  constexpr char kText[] = "Warning: no driver here\nsomething else\n";
  if (write(STDERR_FILENO, kText, sizeof kText - 1) < 0) _exit(1);
}

}  // namespace
