// DeviceSampling: how tokens are chosen where the logits are, one after the other, without the host
// looking at any. Not a sampler: it knows no history.
#pragma once

#include <cstdint>

#include "ops/args.hpp"

namespace loom::core {

// As SamplerOptions have it. The n-th token takes number index + n of Philox(seed, stream 0).
struct DeviceSampling {
  static constexpr int64_t kMostTopK = SampleArgs::kMost;
  float temperature = 0.0f;  // 0: the first largest logit, and nothing below matters
  int64_t top_k = 1;         // 1 .. kMostTopK
  float top_p = 1.0f, min_p = 0.0f;
  uint64_t seed = 0, index = 0;
};

}  // namespace loom::core
