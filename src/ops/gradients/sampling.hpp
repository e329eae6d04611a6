// Integers of the sample op (SampleArgs in ops/args.hpp), shared by all backends so that they
// compare the same numbers.
#pragma once

#include <cmath>
#include <cstdint>

namespace loom::core {

// The weight of the best candidate.
constexpr uint32_t kDrawOne = 1U << 22;

// ceil(top_p 2^31)
inline uint32_t sample_share(float top_p) {
  return static_cast<uint32_t>(std::ceil(static_cast<double>(top_p) * 0x1p31));
}
// ceil(min_p kDrawOne)
inline uint32_t sample_least(float min_p) {
  return static_cast<uint32_t>(std::ceil(static_cast<double>(min_p) * kDrawOne));
}

}  // namespace loom::core
