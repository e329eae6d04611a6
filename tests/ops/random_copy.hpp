// Random strided copies: up to six axes in any memory order, with gaps, flips, broadcasts, and
// parts of larger tensors on both sides. Tensors have shapes but no memory yet.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "base/numbers/rng.hpp"
#include "ops/moves.hpp"

namespace loom::core::test {

class Draws {
 public:
  explicit Draws(uint64_t seed) : rng_(seed, 31) {}
  // From 0 to n - 1.
  int64_t below(int64_t n) {
    return static_cast<int64_t>(rng_.bits(next_++) % static_cast<uint64_t>(n));
  }
  bool one_in(int64_t n) { return below(n) == 0; }

 private:
  Rng rng_;
  uint64_t next_ = 0;
};

// Computes the layout of axes: steps, the first element, and the number of elements. Axes with
// `repeat` get step 0.
inline int64_t lay_out(Draws& draw, const CopyArgs& args, const std::vector<bool>& repeat,
                       bool tight, int64_t (&step)[Shape::kMaxRank], int64_t& first) {
  std::vector<int> order;
  for (int k = 0; k < args.rank; ++k) order.push_back(k);
  for (int k = args.rank; k-- > 1;)
    std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(draw.below(k + 1))]);
  if (draw.one_in(3)) std::sort(order.begin(), order.end(), std::greater<>());
  int64_t size = 1;
  first = 0;
  for (const int k : order) {
    step[k] = 0;
    if (repeat[static_cast<size_t>(k)]) continue;
    const int64_t by = tight || !draw.one_in(4) ? 1 : 1 + draw.below(3);
    const int64_t gap = tight ? 0 : draw.below(3);
    const int64_t skip = tight ? 0 : draw.below(gap + 1);
    const bool flip = args.extent[k] > 0 && draw.one_in(4);
    const int64_t span = std::max<int64_t>(args.extent[k] - 1, 0) * by;
    step[k] = flip ? -by * size : by * size;
    first += (skip + (flip ? span : 0)) * size;
    size *= std::max<int64_t>(span + 1, 1) + gap;
  }
  return size;
}

// About `most` elements. repeats: axes of x may be broadcast.
inline CopyArgs random_copy(uint64_t seed, int64_t most, bool repeats, DType dtype = DType::f32) {
  Draws draw(seed);
  CopyArgs args;
  args.rank = static_cast<int>(draw.below(Shape::kMaxRank + 1));
  int64_t left = most;
  std::vector<bool> repeat, never;
  for (int k = 0; k < args.rank; ++k) {
    const int64_t largest = k + 1 == args.rank ? left : std::min<int64_t>(left, 2 + draw.below(40));
    args.extent[k] = draw.one_in(12) ? draw.below(2) : 1 + draw.below(largest);
    left = std::max<int64_t>(left / std::max<int64_t>(args.extent[k], 1), 1);
    repeat.push_back(repeats && draw.one_in(4));
    never.push_back(false);
  }
  if (args.rank > 0) std::swap(args.extent[args.rank - 1], args.extent[draw.below(args.rank)]);
  const bool tight = draw.one_in(2);
  const int64_t x_count = lay_out(draw, args, repeat, draw.one_in(2), args.x_step, args.x_first);
  const int64_t y_count = lay_out(draw, args, never, tight, args.y_step, args.y_first);
  args.whole = args.count() == y_count;
  for (const auto& [t, count] : {std::pair{&args.x, x_count}, std::pair{&args.y, y_count}}) {
    *t = Tensor{dtype, Layout::plain, Shape{1, count}, count, nullptr};
  }
  return args;
}

// Calls f(index in x, index in y) for every element, by counting coordinates.
template <class F>
void each_element(const CopyArgs& args, F&& f) {
  if (args.count() == 0) return;
  std::array<int64_t, Shape::kMaxRank> at{};
  for (;;) {
    int64_t from = args.x_first, to = args.y_first;
    for (int k = 0; k < args.rank; ++k) {
      from += at[static_cast<size_t>(k)] * args.x_step[k];
      to += at[static_cast<size_t>(k)] * args.y_step[k];
    }
    f(from, to);
    int k = args.rank - 1;
    for (; k >= 0; --k) {
      if (++at[static_cast<size_t>(k)] < args.extent[k]) break;
      at[static_cast<size_t>(k)] = 0;
    }
    if (k < 0) return;
  }
}

}  // namespace loom::core::test
