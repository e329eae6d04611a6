// Bit casts between floats and integers, by a builtin: one supported compiler lacks std::bit_cast.
#pragma once

#include <cstdint>
#include <cstring>

namespace loom::core {

template <class To, class From>
inline To bit_cast(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(To));
  return to;
}

inline uint32_t f32_bits(float x) {
  return bit_cast<uint32_t>(x);
}
inline float f32_from_bits(uint32_t u) {
  return bit_cast<float>(u);
}

// Little-endian loads from unaligned bytes.
template <class T>
inline T load_le(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof(T));
  return v;
}

}  // namespace loom::core
