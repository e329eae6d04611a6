// Open addressing with linear probing, at most half full. The hash folds 64 x 64 -> 128 bit
// products, as wyhash does.
#include "text/models/string_table.hpp"

#include <algorithm>
#include <cstring>

namespace loom::core::text {
namespace {

__extension__ typedef unsigned __int128 Wide;

uint64_t fold(uint64_t a, uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

constexpr uint64_t kSecret0 = 0xa0761d6478bd642f;
constexpr uint64_t kSecret1 = 0xe7037ed1a0b428db;

uint64_t hash_pair(int32_t left, int32_t right) {
  const uint64_t key =
      static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  return fold(key ^ kSecret0, kSecret1);
}

// The number of slots that keeps `entries` entries at half load.
size_t slots_for(size_t entries) {
  size_t slots = 16;
  while (slots < entries * 2) slots *= 2;
  return slots;
}

}  // namespace

uint64_t hash_bytes(std::string_view bytes) {
  uint64_t hash = fold(kSecret0 ^ bytes.size(), kSecret1);
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t count = std::min<size_t>(8, bytes.size());
    std::memcpy(&word, bytes.data(), count);
    hash = fold(hash ^ word ^ kSecret0, kSecret1 ^ count);
    bytes.remove_prefix(count);
  }
  return hash;
}

std::string_view StringTable::key(size_t index) const {
  return std::string_view(bytes_).substr(entries_[index].offset, entries_[index].length);
}

size_t StringTable::slot_of(std::string_view text, uint64_t hash) const {
  size_t slot = hash & (slots_.size() - 1);
  while (slots_[slot] != 0) {
    const Entry& entry = entries_[slots_[slot] - 1];
    if (entry.hash == hash && key(slots_[slot] - 1) == text) return slot;
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void StringTable::grow(size_t slots) {
  slots_.assign(slots, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t slot = entries_[i].hash & (slots - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots - 1);
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

void StringTable::reserve(size_t entries) {
  entries_.reserve(entries);
  if (slots_for(entries) > slots_.size()) grow(slots_for(entries));
}

bool StringTable::insert(std::string_view text, int32_t value) {
  if (slots_for(entries_.size() + 1) > slots_.size()) grow(slots_for(entries_.size() + 1));
  const uint64_t hash = hash_bytes(text);
  const size_t slot = slot_of(text, hash);
  if (slots_[slot] != 0) return false;
  entries_.push_back({bytes_.size(), text.size(), hash, value});
  bytes_ += text;
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  return true;
}

int32_t StringTable::find(std::string_view text) const {
  if (slots_.empty()) return -1;
  const size_t slot = slot_of(text, hash_bytes(text));
  return slots_[slot] == 0 ? -1 : entries_[slots_[slot] - 1].value;
}

size_t PairTable::slot_of(int32_t left, int32_t right) const {
  size_t slot = hash_pair(left, right) & (slots_.size() - 1);
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void PairTable::reserve(size_t entries) {
  if (slots_for(entries) <= slots_.size()) return;
  std::vector<Slot> old(slots_for(entries));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.left >= 0) slots_[slot_of(slot.left, slot.right)] = slot;
  }
}

void PairTable::set(int32_t left, int32_t right, Merge merge) {
  reserve(used_ + 1);
  Slot& slot = slots_[slot_of(left, right)];
  if (slot.left < 0) ++used_;
  slot = {left, right, merge};
}

const PairTable::Merge* PairTable::find(int32_t left, int32_t right) const {
  if (slots_.empty()) return nullptr;
  const Slot& slot = slots_[slot_of(left, right)];
  return slot.left < 0 ? nullptr : &slot.merge;
}

}  // namespace loom::core::text
