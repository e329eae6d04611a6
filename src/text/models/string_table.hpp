// Two flat hash tables for vocabularies of a few hundred thousand entries: text -> id and (id, id)
// -> value. They are filled once, then only read, so any number of threads may look up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace loom::core::text {

// Keys are in one block of memory; entries keep their insertion order.
class StringTable {
 public:
  void reserve(size_t entries);
  // Returns false if the key exists already.
  bool insert(std::string_view key, int32_t value);
  // The value of `key`, or -1.
  int32_t find(std::string_view key) const;

  size_t size() const { return entries_.size(); }
  std::string_view key(size_t index) const;
  int32_t value(size_t index) const { return entries_[index].value; }

 private:
  struct Entry {
    size_t offset = 0;
    size_t length = 0;
    uint64_t hash = 0;
    int32_t value = 0;
  };
  size_t slot_of(std::string_view key, uint64_t hash) const;
  void grow(size_t slots);
  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // index into entries_ plus 1; 0 is free
};

class PairTable {
 public:
  struct Merge {
    int32_t rank = 0;
    int32_t id = 0;  // of the merged token
  };
  void reserve(size_t entries);
  // Overwrites the value of an existing pair.
  void set(int32_t left, int32_t right, Merge merge);
  const Merge* find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    int32_t left = -1;  // -1 is free
    int32_t right = -1;
    Merge merge;
  };
  size_t slot_of(int32_t left, int32_t right) const;
  size_t used_ = 0;
  std::vector<Slot> slots_;
};

uint64_t hash_bytes(std::string_view bytes);

}  // namespace loom::core::text
