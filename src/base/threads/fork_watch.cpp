#include "base/threads/fork_watch.hpp"

#include <atomic>

#if LOOM_THREADS && (defined(__unix__) || defined(__APPLE__))
#include <pthread.h>
#endif

namespace loom::core {
namespace {

std::atomic<int> forks{0};

}  // namespace

int fork_count() {
#if LOOM_THREADS && (defined(__unix__) || defined(__APPLE__))
  static const int watched = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(watched);
#endif
  return forks.load(std::memory_order_relaxed);
}

}  // namespace loom::core
