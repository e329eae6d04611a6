// A sequence of random numbers from a stream of the counter-based generator. It depends on seed,
// stream and the draws before, never on threads or the machine.
#pragma once

#include <cstddef>

#include "base/numbers/rng.hpp"

namespace loom::core {

class Draws {
 public:
  Draws(uint64_t seed, uint64_t stream) : rng_(seed, stream) {}

  // Uniform in [0, 1), 53 bits.
  double unit() {
    const uint64_t high = rng_.bits(next_++) >> 5, low = rng_.bits(next_++) >> 6;
    return static_cast<double>(high * (uint64_t{1} << 26) + low) * 0x1p-53;
  }
  bool chance(double probability) { return unit() < probability; }
  // Uniform in 0 .. n - 1; n is at least 1.
  size_t below(size_t n) { return static_cast<size_t>(unit() * static_cast<double>(n)); }
  // Uniform in [-most, most).
  float around(double most) { return static_cast<float>((2 * unit() - 1) * most); }

 private:
  Rng rng_;
  uint64_t next_ = 0;
};

}  // namespace loom::core
