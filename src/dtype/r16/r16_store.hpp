// Stores scales of one lane in a group of R16. Private to the room.
#pragma once

#include <cstring>

#include "dtype/r16/r16.hpp"
#include "dtype/scale.hpp"

namespace loom::core {

template <class T>
void store(std::byte* at, int64_t index, T value) {
  std::memcpy(at + index * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

inline void store_row_scale(const R16& g, const DTypeInfo& info, int64_t lane, const Scale& s,
                            std::byte* group) {
  if (info.compute == ComputeType::f64) {
    store(group + g.row_scales, lane, s.step);
    if (info.affine()) store(group + g.zeros, lane, s.zero);
    return;
  }
  const double unit = info.level_unit;
  store(group + g.row_scales, lane, static_cast<float>(s.step * unit));
  if (info.affine()) store(group + g.zeros, lane, static_cast<int32_t>(s.zero));
}

inline void store_block_scale(const R16& g, const DTypeInfo& info, int64_t scale_block,
                              int64_t lane, const BlockScale& b, std::byte* group) {
  std::byte* at = group + g.block_scales + scale_block * g.scale_block_bytes;
  switch (g.block_zeros / kR16Rows) {
    case 1: store(at, lane, static_cast<uint8_t>(b.stored)); break;
    case 2: store(at, lane, static_cast<uint16_t>(b.stored)); break;
    default: store(at, lane, b.stored);
  }
  if (info.zero == ZeroRule::f16) store(at + g.block_zeros, lane, static_cast<uint16_t>(b.zero));
  if (info.zero == ZeroRule::code) store(at + g.block_zeros, lane, static_cast<uint8_t>(b.zero));
}

}  // namespace loom::core
