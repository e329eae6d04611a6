#include "base/arena.hpp"

#include <algorithm>
#include <numeric>

#include "base/numbers/checked.hpp"

namespace loom::core {

int ArenaPlan::add(int64_t bytes, int64_t first) {
  slots_.push_back({round_up(bytes, 64), first, first, 0});
  return static_cast<int>(slots_.size()) - 1;
}

void ArenaPlan::use(int slot, int64_t step) {
  Slot& s = slots_[static_cast<size_t>(slot)];
  s.last = std::max(s.last, step);
}

void ArenaPlan::solve() {
  std::vector<int> order(slots_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return bytes(a) > bytes(b); });
  std::vector<int> placed;  // by ascending offset
  for (int id : order) {
    Slot& slot = slots_[static_cast<size_t>(id)];
    int64_t offset = 0;
    for (int other_id : placed) {
      const Slot& other = slots_[static_cast<size_t>(other_id)];
      const bool together = slot.first <= other.last && other.first <= slot.last;
      if (together && offset < other.offset + other.bytes && other.offset < offset + slot.bytes) {
        offset = other.offset + other.bytes;
      }
    }
    slot.offset = offset;
    total_ = std::max(total_, offset + slot.bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), id, [&](int a, int b) {
      return this->offset(a) < this->offset(b);
    });
    placed.insert(at, id);
  }
}

}  // namespace loom::core
