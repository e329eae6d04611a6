// The reaction of a server to a failed allocation: it frees the memory of the failed step and
// retries a small step. A process that lacks memory for a large request has memory for a short
// reply.
#pragma once

#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace loom::core {

// Calls `step` until it does not run out of memory, at most ten times. A step that throws must
// leave no effects. Returns false if memory is missing each time.
template <class F>
bool try_again(F&& step) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    try {
      if (attempt > 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      step();
      return true;
    } catch (const std::bad_alloc&) {
    }
  }
  return false;
}

}  // namespace loom::core
