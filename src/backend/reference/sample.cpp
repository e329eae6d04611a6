// sample: picks the next token of each row among the candidates of topk. Lanes share the rows.
#include "ops/gradients/sampling.hpp"

#include <cmath>
#include <limits>

#include "backend/reference/kernels.hpp"
#include "base/numbers/rng.hpp"
#include "ops/fmath.hpp"

namespace loom::core::reference {
namespace {

float nan_smallest(float v) {
  return v == v ? v : -std::numeric_limits<float>::infinity();
}

uint32_t weight(float v, float best, float temperature) {
  if (v == best) return kDrawOne;
  if (std::isinf(v) || std::isinf(best)) return 0;
  constexpr auto kOne = static_cast<float>(kDrawOne);
  const float w = fmath::exp<float>((v - best) / temperature);
  return static_cast<uint32_t>(fmath::min(w * kOne + 0.5f, kOne));
}

// The index of the drawn one of k candidates.
int64_t drawn(const float* values, int64_t k, const SampleArgs& args, uint64_t index) {
  uint32_t weights[SampleArgs::kMax] = {};
  uint32_t total = 0;
  for (int64_t i = 0; i < k; ++i) {
    weights[i] = weight(nan_smallest(values[i]), nan_smallest(values[0]), args.temperature);
    total += weights[i];
  }
  const uint64_t enough = (uint64_t{sample_share(args.top_p)} * total + 0x7fffffff) >> 31;
  const uint32_t least = sample_least(args.min_p);
  uint32_t mass = weights[0];
  int64_t kept = 1;
  while (kept < k && mass < enough && weights[kept] >= least) mass += weights[kept++];

  const uint64_t target = (uint64_t{philox(args.seed, 0, index)[0]} * mass) >> 32;
  int64_t i = 0;
  for (uint32_t sum = weights[0]; sum <= target; sum += weights[i]) ++i;
  return i;
}

}  // namespace

template <class T>
void sample(const SampleArgs& args, const Lane& lane) {
  const int64_t k = args.values.cols();
  const LaneRange rows = lane.range(args.values.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const int64_t i = drawn(args.values.f32_row(r), k, args, args.index + static_cast<uint64_t>(r));
    args.next.i32()[r] = args.ids.i32()[r * args.ids.row_stride + i];
  }
}
LOOM_REFERENCE_BODY_F32(sample, SampleArgs);

}  // namespace loom::core::reference
