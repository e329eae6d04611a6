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

enum class Held : uint8_t { weights, sessions, training, mapped };

class MemoryBooks {
 public:
  void add(Held what, int64_t bytes) {
    now_[static_cast<size_t>(what)] += bytes;
    if (what == Held::mapped) return;
    const int64_t total = total_ += bytes;
    int64_t peak = peak_;
    while (total > peak && !peak_.compare_exchange_weak(peak, total)) {
    }
  }
  loom::MemoryUse use() const {
    const auto now = [&](Held what) { return now_[static_cast<size_t>(what)].load(); };
    loom::MemoryUse use;
    use.weights = now(Held::weights);
    use.sessions = now(Held::sessions);
    use.training = now(Held::training);
    use.mapped = now(Held::mapped);
    use.total = total_;
    use.peak = std::max<int64_t>(peak_, use.total);
    return use;
  }

 private:
  std::array<std::atomic<int64_t>, 4> now_{};
  std::atomic<int64_t> total_{0}, peak_{0};
};

// An entry of the memory use; removed with its owner.
class Holding {
 public:
  Holding() = default;
  Holding(std::shared_ptr<MemoryBooks> books, Held what, int64_t bytes = 0)
      : books_(std::move(books)), what_(what) {
    set(bytes);
  }
  Holding(Holding&& other) noexcept
      : books_(std::move(other.books_)),
        what_(other.what_),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Holding& operator=(Holding&& other) noexcept {
    std::swap(books_, other.books_);
    std::swap(what_, other.what_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Holding() { set(0); }

  void set(int64_t bytes) {
    if (books_ == nullptr || bytes == bytes_) return;
    books_->add(what_, bytes - bytes_);
    bytes_ = bytes;
  }

 private:
  std::shared_ptr<MemoryBooks> books_;
  Held what_ = Held::weights;
  int64_t bytes_ = 0;
};

}  // namespace loom::core
