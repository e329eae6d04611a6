// A server clock that tests set forward, so that they need not wait for expiry.
#pragma once

#include <atomic>
#include <memory>

#include "serve/clock.hpp"

namespace loom::core::test {

class SetClock {
 public:
  ServeClock clock() const {
    return [ahead = ahead_] {
      return std::chrono::steady_clock::now() + std::chrono::seconds(ahead->load());
    };
  }
  void advance(int64_t seconds) const { *ahead_ += seconds; }

 private:
  std::shared_ptr<std::atomic<int64_t>> ahead_ = std::make_shared<std::atomic<int64_t>>(0);
};

}  // namespace loom::core::test
