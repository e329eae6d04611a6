// Waiting in tests: for an event, with a deadline that only a defect exceeds. A test that sleeps
// for a fixed time, or asserts a duration, fails on a busy machine.
#pragma once

#include <chrono>
#include <thread>

namespace loom::core::test {

// Nothing takes this long on any busy machine. ctest ends a test after ten minutes.
constexpr std::chrono::milliseconds kDeadline{120'000};
constexpr int kDeadlineMs = static_cast<int>(kDeadline.count());

// Asks until `event()` is true, every millisecond; false at the deadline.
template <class Event>
bool wait_until(Event&& event) {
  const auto end = std::chrono::steady_clock::now() + kDeadline;
  while (!event()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace loom::core::test
