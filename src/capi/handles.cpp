// The table of handles.hpp. Slots are never freed, only reused, the longest unused one first.
// Reading a slot takes no lock.
#include "capi/handles.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <string>
#include <string_view>

namespace loom::capi {
namespace {

// A handle from its low bits up: slot + 1, kind, generation.
constexpr int kBits = sizeof(uintptr_t) * 8;
constexpr int kSlotBits = kBits == 64 ? 28 : 19, kKindBits = 5;
constexpr uintptr_t kSlotMask = (uintptr_t{1} << kSlotBits) - 1;
constexpr uintptr_t kKindMask = (uintptr_t{1} << kKindBits) - 1;
constexpr uint32_t kFirstChunk = 256;
constexpr uint32_t kNoSlot = UINT32_MAX;

constexpr std::array<std::string_view, 19> kNames = {
    "handle",          "loom_array",     "loom_engine",       "loom_network", "loom_session",
    "loom_dataset",    "loom_trainer",   "loom_history",      "loom_model",   "loom_model_session",
    "loom_generation", "loom_tokenizer", "loom_reply_parser", "loom_batch",   "loom_population",
    "loom_genome",     "loom_mesh",      "loom_model_file",   "loom_options"};

struct Slot {
  std::atomic<uintptr_t> handle{0};  // 0 if free
  void* object = nullptr;
  uintptr_t generation = 0;
  uint32_t next_free = 0;  // slot + 1
};

// Chunk c holds kFirstChunk << c slots, so that slots never move and few chunks hold all.
struct Place {
  size_t chunk;
  uint32_t at;
};
Place place_of(uint32_t slot) {
  const uint32_t moved = slot + kFirstChunk;
  const auto chunk = static_cast<size_t>(std::bit_width(moved) - std::bit_width(kFirstChunk));
  return {chunk, moved - (kFirstChunk << chunk)};
}

class Table {
 public:
  uintptr_t add(Kind kind, void* object);
  Slot* find(uintptr_t handle) const;
  bool remove(Slot& slot, uintptr_t handle);

 private:
  Slot& slot(uint32_t index) const;
  uint32_t unused_slot();

  std::array<std::atomic<Slot*>, kSlotBits> chunks_{};
  std::mutex mutex_;
  uint32_t count_ = 0, first_free_ = 0, last_free_ = 0;  // the latter two: slot + 1
};

Slot& Table::slot(uint32_t index) const {
  const Place slot_address = place_of(index);
  return chunks_[slot_address.chunk].load(std::memory_order_acquire)[slot_address.at];
}

uint32_t Table::unused_slot() {
  if (first_free_ != 0) {
    const uint32_t index = first_free_ - 1;
    first_free_ = slot(index).next_free;
    return index;
  }
  const Place slot_address = place_of(count_);
  if (slot_address.chunk >= chunks_.size() || count_ + 1 >= kSlotMask) return kNoSlot;
  if (chunks_[slot_address.chunk].load(std::memory_order_relaxed) == nullptr)
    chunks_[slot_address.chunk].store(new Slot[kFirstChunk << slot_address.chunk],
                                      std::memory_order_release);
  return count_++;
}

uintptr_t Table::add(Kind kind, void* object) {
  const std::lock_guard lock(mutex_);
  const uint32_t index = unused_slot();
  if (index == kNoSlot) return 0;
  Slot& s = slot(index);
  s.generation += uintptr_t{1} << (kSlotBits + kKindBits);  // wraps
  s.object = object;
  const uintptr_t handle =
      s.generation | (static_cast<uintptr_t>(kind) << kSlotBits) | (uintptr_t{index} + 1);
  s.handle.store(handle, std::memory_order_release);
  return handle;
}

Slot* Table::find(uintptr_t handle) const {
  const uintptr_t number = handle & kSlotMask;
  if (number == 0) return nullptr;
  const Place slot_address = place_of(static_cast<uint32_t>(number - 1));
  if (slot_address.chunk >= chunks_.size()) return nullptr;
  Slot* chunk = chunks_[slot_address.chunk].load(std::memory_order_acquire);
  if (chunk == nullptr) return nullptr;
  Slot& s = chunk[slot_address.at];
  return s.handle.load(std::memory_order_acquire) == handle ? &s : nullptr;
}

bool Table::remove(Slot& s, uintptr_t handle) {
  const std::lock_guard lock(mutex_);
  if (s.handle.load(std::memory_order_relaxed) != handle) return false;
  s.handle.store(0, std::memory_order_release);
  const auto number = static_cast<uint32_t>(handle & kSlotMask);
  s.next_free = 0;
  if (first_free_ == 0) {
    first_free_ = number;
  } else {
    slot(last_free_ - 1).next_free = number;
  }
  last_free_ = number;
  return true;
}

// Lives until the process ends: handles may be freed by destructors of static objects.
Table& table() {
  static auto* const kTable = new Table;
  return *kTable;
}

constexpr Kind kind_of(uintptr_t handle) {
  return static_cast<Kind>((handle >> kSlotBits) & kKindMask);
}

constexpr std::string_view name_of(Kind kind) {
  return kNames[static_cast<size_t>(kind)];
}

// Made where a call fails, so that one that works builds no text.
template <class... Parts>
Error wrong_handle(const Parts&... parts) {
  std::string message;
  (message.append(parts), ...);
  return {Code::invalid_argument, std::move(message), {}};
}

Result<Slot*> slot_of(uintptr_t handle, Kind kind) {
  const std::string_view name = name_of(kind);
  if (handle == 0) return wrong_handle("the ", name, " is null");
  Slot* slot = table().find(handle);
  if (slot == nullptr)
    return wrong_handle("this ", name, " was freed, or is not a handle of this library");
  const Kind found = kind_of(handle);
  if (found != kind) return wrong_handle("a ", name_of(found), " was given for a ", name);
  return slot;
}

}  // namespace

uintptr_t new_handle(Kind kind, void* object) {
  return table().add(kind, object);
}

Result<void*> object_of(uintptr_t handle, Kind kind) {
  // A handle that is right is found at once; what is wrong with another is said by slot_of().
  const Slot* right = table().find(handle);
  if (right != nullptr && kind_of(handle) == kind) [[likely]]
    return right->object;
  LOOM_ASSIGN(const Slot* slot, slot_of(handle, kind));
  return slot->object;
}

Result<void*> take_object(uintptr_t handle, Kind kind) {
  LOOM_ASSIGN(Slot * slot, slot_of(handle, kind));
  void* object = slot->object;
  if (!table().remove(*slot, handle))
    return wrong_handle("this ", name_of(kind), " was freed already");
  return object;
}

}  // namespace loom::capi
