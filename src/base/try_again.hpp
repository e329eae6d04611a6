// What a server does if an allocation fails: it frees what the failed step held and tries a small
// step again. A process that lacks memory for a large request has memory for a short reply.
#pragma once

#include <chrono>
#include <new>
#include <thread>
#include <utility>

namespace loom::core {

// Calls `step` until it needs no memory that is missing, ten times at most. A step that throws must
// be as if it had not begun. Returns false if memory is missing each time.
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
