// The time by which a server forgets what nobody asks for. Tests set a clock of theirs forward.
#pragma once

#include <chrono>
#include <functional>

namespace loom::core {

// Called by several threads at a time; never goes back.
using ServeClock = std::function<std::chrono::steady_clock::time_point()>;

}  // namespace loom::core
