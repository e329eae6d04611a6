// The clock for expiry of unused data in a server. Tests set their own clock.
#pragma once

#include <chrono>
#include <functional>

namespace loom::core {

// Called by several threads at the same time; monotonic.
using ServeClock = std::function<std::chrono::steady_clock::time_point()>;

}  // namespace loom::core
