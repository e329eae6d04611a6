// A sink that hangs until a test lets it go, and says when it began to.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "telemetry/sink.hpp"

namespace loom::core::test {

// Does not come back before it is let go.
struct Gate {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false, open = false;
  void pass() {
    std::unique_lock<std::mutex> lock(mutex);
    reached = true;
    changed.notify_all();
    changed.wait(lock, [this] { return open; });
  }
  void wait_until_reached() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return reached; });
  }
  void let_go() {
    const std::lock_guard<std::mutex> lock(mutex);
    open = true;
    changed.notify_all();
  }
};

class Hanging final : public Sink {
 public:
  explicit Hanging(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {}
  bool takes(Record::Kind) const override { return true; }
  Status write(const Record&) override {
    gate_->pass();
    return {};
  }

 private:
  std::shared_ptr<Gate> gate_;
};

}  // namespace loom::core::test
