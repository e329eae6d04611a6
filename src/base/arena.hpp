// ArenaPlan: places buffers with known lifetimes in one block of memory. Greedy by size: the
// largest first, each at the lowest offset that no concurrently live buffer uses. Offsets are
// multiples of 64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace loom::core {

class ArenaPlan {
 public:
  // Adds a buffer of `bytes` that is live from step `first` on; returns its slot.
  int add(int64_t bytes, int64_t first);
  // Marks the slot as needed at `step`.
  void use(int slot, int64_t step);
  // Chooses all offsets. Call once, after the last add and use.
  void solve();

  int64_t offset(int slot) const { return slots_[static_cast<size_t>(slot)].offset; }
  int64_t bytes(int slot) const { return slots_[static_cast<size_t>(slot)].bytes; }
  int64_t total() const { return total_; }

 private:
  struct Slot {
    int64_t bytes, first, last, offset;
  };
  std::vector<Slot> slots_;
  int64_t total_ = 0;
};

}  // namespace loom::core
