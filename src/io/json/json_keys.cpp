// See json_keys.hpp. Small objects are searched linearly; the table is made at kSmall members.
#include "io/json/json_keys.hpp"

#include <algorithm>

#include "base/numbers/bits.hpp"

namespace loom::core {
namespace {

constexpr size_t kSmall = 16;

// Both halves of a 128-bit product: every input bit affects every output bit, depending on the
// salt. With a plain multiplication, chosen top bits would collide under any salt.
uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

uint64_t JsonKeySet::hash(std::string_view key) const {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15, kOther = 0xD6E8FEB86659FD93;
  uint64_t h = mix(salt_ ^ kOdd, key.size() + kOther);
  for (; key.size() >= 8; key.remove_prefix(8)) {
    h = mix(h ^ load_le<uint64_t>(key.data()), kOdd);
  }
  uint64_t rest = 0;
  std::copy(key.begin(), key.end(), reinterpret_cast<char*>(&rest));
  return mix(h ^ rest, kOther);
}

void JsonKeySet::insert(uint32_t member, uint64_t hash) {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] != 0) at = (at + 1) & mask;
  slots_[at] = member + 1;
}

bool JsonKeySet::insert_last(const std::deque<JsonValue::Member>& members, size_t first) {
  const size_t count = members.size() - first;
  const std::string& key = members.back().first;
  if (count <= kSmall) {
    return std::none_of(members.begin() + static_cast<ptrdiff_t>(first), members.end() - 1,
                        [&](const JsonValue::Member& m) { return m.first == key; });
  }
  if (slots_.size() < 2 * count) {
    slots_.assign(std::max(4 * kSmall, 2 * slots_.size()), 0);
    for (size_t i = 0; i + 1 < count; ++i) {
      insert(static_cast<uint32_t>(i), hash(members[first + i].first));
    }
  }
  const uint64_t h = hash(key);
  const size_t mask = slots_.size() - 1;
  for (size_t at = h & mask; slots_[at] != 0; at = (at + 1) & mask) {
    if (members[first + slots_[at] - 1].first == key) return false;
  }
  insert(static_cast<uint32_t>(count - 1), h);
  return true;
}

}  // namespace loom::core
