// Memory use of an engine's objects: each has an entry while it lives. Private to the room;
// thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>

#include "loom/engine.hpp"

namespace loom::core {

enum class MemoryKind : uint8_t { weights, sessions, training, mapped };

class MemoryTracker {
 public:
  void add(MemoryKind what, int64_t bytes) {
    now_[static_cast<size_t>(what)] += bytes;
    if (what == MemoryKind::mapped) return;
    const int64_t total = total_ += bytes;
    int64_t peak = peak_;
    while (total > peak && !peak_.compare_exchange_weak(peak, total)) {
    }
  }
  loom::MemoryUse use() const {
    const auto now = [&](MemoryKind what) { return now_[static_cast<size_t>(what)].load(); };
    loom::MemoryUse use;
    use.weights = now(MemoryKind::weights);
    use.sessions = now(MemoryKind::sessions);
    use.training = now(MemoryKind::training);
    use.mapped = now(MemoryKind::mapped);
    use.total = total_;
    use.peak = std::max<int64_t>(peak_, use.total);
    return use;
  }

 private:
  std::array<std::atomic<int64_t>, 4> now_{};
  std::atomic<int64_t> total_{0}, peak_{0};
};

// An entry of the memory use; removed with its owner.
class ScopedMemoryUse {
 public:
  ScopedMemoryUse() = default;
  ScopedMemoryUse(std::shared_ptr<MemoryTracker> memory_tracker, MemoryKind what, int64_t bytes = 0)
      : memory_tracker_(std::move(memory_tracker)), what_(what) {
    set(bytes);
  }
  ScopedMemoryUse(ScopedMemoryUse&& other) noexcept
      : memory_tracker_(std::move(other.memory_tracker_)),
        what_(other.what_),
        bytes_(std::exchange(other.bytes_, 0)) {}
  ScopedMemoryUse& operator=(ScopedMemoryUse&& other) noexcept {
    std::swap(memory_tracker_, other.memory_tracker_);
    std::swap(what_, other.what_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ScopedMemoryUse() { set(0); }

  void set(int64_t bytes) {
    if (memory_tracker_ == nullptr || bytes == bytes_) return;
    memory_tracker_->add(what_, bytes - bytes_);
    bytes_ = bytes;
  }

 private:
  std::shared_ptr<MemoryTracker> memory_tracker_;
  MemoryKind what_ = MemoryKind::weights;
  int64_t bytes_ = 0;
};

}  // namespace loom::core
