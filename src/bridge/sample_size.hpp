// The limit of the size of one input sample in a file; it keeps all later counts from overflowing.
// Private to the room.
#pragma once

#include "base/numbers/checked.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

constexpr uint64_t kMaxSampleValues = uint64_t{1} << 31;

inline bool sample_fits(const Shape& sample) {
  uint64_t values = 1;
  for (int i = 0; i < sample.rank(); ++i) {
    if (sample[i] < 1 || !checked_mul(values, static_cast<uint64_t>(sample[i]), values) ||
        values > kMaxSampleValues)
      return false;
  }
  return sample.rank() > 0 && sample.rank() < Shape::kMaxRank;
}

}  // namespace loom::core
