// KeySet: whether an object has a key already. It is a hash set of member numbers and owns no text.
// So a vocabulary of 100,000 keys is checked in linear time with 8-16 bytes a key. Its hash is
// salted with an address: a text made to collide in one run does not collide in the next.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "io/json/json.hpp"

namespace loom::core {

class JsonKeySet {
 public:
  // The members of one object are members[first..]; the last of them is new. False if an earlier
  // one has the same key.
  bool insert_last(const std::deque<JsonValue::Member>& members, size_t first);
  size_t bytes() const { return slots_.size() * sizeof(uint32_t); }

 private:
  uint64_t hash(std::string_view key) const;
  void insert(uint32_t member, uint64_t hash);

  uint64_t salt_ = reinterpret_cast<uintptr_t>(this);  // unchanged when the set moves
  std::vector<uint32_t> slots_;  // member number + 1, or 0; a power of two, at most half full
};

}  // namespace loom::core
