// random: value i of a stream at a step comes from Philox block step * 2^40 + i / 4. Its four words
// w serve four values, computed in double and rounded once.
//   uniform: (w >> 8) / 2^24, in [0, 1), as Rng::uniform;
//   gumbel:  -log(-log(u)) with u = (w + 1/2) / 2^32, in (0, 1);
//   normal:  Box and Muller (1958): words 0, 1 give values 0, 1, words 2, 3 values 2, 3: radius
//            sqrt(-2 log((w_even + 1) / 2^32)), angle 2 pi w_odd / 2^32, cosine then sine.
// Lanes share the values.
#include "backend/reference/kernels.hpp"
#include "base/numbers/dmath.hpp"
#include "base/numbers/rng.hpp"
#include "ops/fmath.hpp"

namespace loom::core::reference {
namespace {

constexpr double kTwoPi = 6.28318530717958647693;

double normal_of(const PhiloxBlock& words, size_t i) {
  const double u = (static_cast<double>(words[i / 2 * 2]) + 1.0) * 0x1p-32;
  const double angle = kTwoPi * (static_cast<double>(words[i / 2 * 2 + 1]) * 0x1p-32);
  const double radius = fmath::sqrt<double>(-2.0 * dmath::log(u));
  return radius * (i % 2 == 0 ? dmath::cos(angle) : dmath::sin(angle));
}

double gumbel_of(uint32_t word) {
  const double u = (static_cast<double>(word) + 0.5) * 0x1p-32;
  return -dmath::log(-dmath::log(u));
}

double value_of(RandomKind kind, const PhiloxBlock& words, size_t i) {
  switch (kind) {
    case RandomKind::uniform: return static_cast<double>(words[i] >> 8) * 0x1p-24;
    case RandomKind::normal: return normal_of(words, i);
    case RandomKind::gumbel: return gumbel_of(words[i]);
  }
  return 0.0;
}

// The step, an integer below 2^24; anything else counts as 0.
template <class T>
uint64_t step_of(const Tensor& step) {
  if (step.empty()) return 0;
  const T value = step.values<T>()[0];
  return value >= T(0) && value < T(0x1p24) ? static_cast<uint64_t>(value) : 0;
}

}  // namespace

template <class T>
void random(const RandomArgs& args, const Lane& lane) {
  const int64_t cols = args.y.cols();
  const uint64_t first = step_of<T>(args.step) << 40;
  const LaneRange values = lane.range(args.y.shape.count());
  PhiloxBlock words = {};
  for (int64_t i = values.begin; i < values.end; ++i) {
    if (i == values.begin || i % 4 == 0) {
      words = philox(args.seed, args.stream, first + static_cast<uint64_t>(i) / 4);
    }
    const double value = value_of(args.kind, words, static_cast<size_t>(i) % 4);
    args.y.row<T>(i / cols)[i % cols] = static_cast<T>(value);
  }
}

LOOM_REFERENCE_BODY(random, RandomArgs);

}  // namespace loom::core::reference
