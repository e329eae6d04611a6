// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): a
// counter-based generator. A number is a pure function of (seed, stream, index), so any thread may
// draw any number in any order.
#pragma once

#include <array>
#include <cstdint>

namespace loom::core {

using PhiloxBlock = std::array<uint32_t, 4>;

// One block of four 32-bit numbers for counter (index, stream) under `seed`.
PhiloxBlock philox(uint64_t seed, uint64_t stream, uint64_t index);

class Rng {
 public:
  Rng(uint64_t seed, uint64_t stream) : seed_(seed), stream_(stream) {}

  // The i-th 32-bit number of this stream.
  uint32_t bits(uint64_t i) const { return philox(seed_, stream_, i / 4)[i % 4]; }

  // The i-th number of this stream, uniform in [0, 1): 24 bits, so every value is exact in f32.
  float uniform(uint64_t i) const { return static_cast<float>(bits(i) >> 8) * 0x1p-24f; }

 private:
  uint64_t seed_;
  uint64_t stream_;
};

}  // namespace loom::core
