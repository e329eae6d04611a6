// DeviceSampling: samples consecutive tokens on the device, without copying logits to the host.
// Unlike a Sampler it has no history.
#pragma once

#include <cstdint>

#include "ops/args.hpp"

namespace loom::core {

// Options as in SamplerOptions. The n-th token takes number index + n of Philox(seed, stream 0).
struct DeviceSampling {
  static constexpr int64_t kMaxTopK = SampleArgs::kMax;
  float temperature = 0.0f;  // 0 takes the first largest logit and ignores the rest
  int64_t top_k = 1;         // 1 .. kMaxTopK
  float top_p = 1.0f, min_p = 0.0f;
  uint64_t seed = 0, index = 0;
};

}  // namespace loom::core
