// The flags that signal handlers of the program write, and SIGHUP as a request to read files again,
// for servers.
#pragma once

#include <atomic>

namespace loom::cli {

// A handler writes it and other threads read it. A volatile sig_atomic_t is for the thread that
// takes the signal alone.
using SignalFlag = std::atomic<int>;
static_assert(SignalFlag::is_always_lock_free, "a signal handler must not wait for a lock");

// From now on SIGHUP does not stop the program: take_hangup() says that it came, and forgets it.
void hangups_reload();
bool take_hangup();

}  // namespace loom::cli
