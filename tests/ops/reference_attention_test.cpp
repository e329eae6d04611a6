// The attention ops of the reference against naive formulas in double, and the guarantees of a
// causal cache.
#include <gtest/gtest.h>

#include <cmath>

#include "backend/reference/reference.hpp"
#include "ops/random_program.hpp"

namespace loom::core {
namespace {

std::vector<float> random(uint64_t seed, int64_t n) {
  const Rng rng(seed, 11);
  std::vector<float> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) values[i] = rng.uniform(i) * 2.0f - 1.0f;
  return values;
}

template <class Args>
void run(void (*Ops::*op)(const Args&, const Lane&), const Args& args) {
  std::vector<std::byte> scratch(1 << 16);
  (reference_ops().*op)(args, Lane{0, 1, scratch.data(), 1 << 16});
}

TEST(ReferenceRope, TurnsEachPairByItsAngle) {
  const int64_t rows = 3, heads = 2, width = 8, half = width / 2, first = 4;
  std::vector<float> x = random(1, rows * heads * width);
  const std::vector<float> before = x;
  std::vector<float> cos(static_cast<size_t>((first + rows) * half)), sin(cos.size());
  const auto angle = [&](int64_t position, int64_t j) {
    return 0.3 * static_cast<double>(position) / static_cast<double>(j + 1);
  };
  for (int64_t p = 0; p < first + rows; ++p) {
    for (int64_t j = 0; j < half; ++j) {
      cos[static_cast<size_t>(p * half + j)] = static_cast<float>(std::cos(angle(p, j)));
      sin[static_cast<size_t>(p * half + j)] = static_cast<float>(std::sin(angle(p, j)));
    }
  }
  const Tensor rotated = f32_matrix(x.data(), rows, heads * width);
  run(&Ops::rope, RopeArgs{rotated, rotated, f32_matrix(cos.data(), first + rows, half),
                           f32_matrix(sin.data(), first + rows, half), heads, first});
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t j = 0; j < half; ++j) {
        const auto low = static_cast<size_t>((r * heads + h) * width + j),
                   high = low + static_cast<size_t>(half);
        const double a = static_cast<double>(before[low]), b = static_cast<double>(before[high]);
        const double t = angle(first + r, j);
        EXPECT_NEAR(static_cast<double>(x[low]), a * std::cos(t) - b * std::sin(t), 3e-7);
        EXPECT_NEAR(static_cast<double>(x[high]), a * std::sin(t) + b * std::cos(t), 3e-7);
      }
    }
  }
}

TEST(ReferenceRope, KeepsWhatIsNotRotated) {
  std::vector<float> x = random(5, 2 * 8), y(x.size(), 7.0f), part = {x[0], x[1], x[8], x[9]};
  std::vector<float> cos = {0.6f, 0.8f}, sin = {0.8f, 0.6f};
  const Tensor c = f32_matrix(cos.data(), 2, 1), s = f32_matrix(sin.data(), 2, 1);
  RopeArgs args{f32_matrix(x.data(), 2, 8), f32_matrix(y.data(), 2, 8), c, s};
  args.rotary_dim = 2;
  run(&Ops::rope, args);
  const Tensor alone = f32_matrix(part.data(), 2, 2);
  run(&Ops::rope, RopeArgs{alone, alone, c, s});
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], i % 8 < 2 ? part[i / 8 * 2 + i % 8] : x[i]) << i;
}

// Keys and values of all positions, a cache that holds them, and queries for the last rows.
struct Scene {
  Scene(int64_t heads_, int64_t kv_heads_, int64_t width_, int64_t length_)
      : heads(heads_),
        kv_heads(kv_heads_),
        width(width_),
        length(length_),
        capacity((length_ + 15) / 16 * 16),
        k(random(2, length_ * kv_heads_ * width_)),
        v(random(3, length_ * kv_heads_ * width_)),
        q(random(4, length_ * heads_ * width_)),
        keys(static_cast<size_t>(kv_heads_ * width_ * capacity)),
        values(keys.size()) {}

  KvCache cache() { return f32_cache(keys.data(), values.data(), kv_heads, width, capacity); }

  void write(int64_t first, int64_t rows) {
    const int64_t cols = kv_heads * width;
    run(&Ops::kv_write,
        KvWriteArgs{f32_matrix(k.data() + first * cols, rows, cols),
                    f32_matrix(v.data() + first * cols, rows, cols), cache(), first});
  }

  std::vector<float> attend(int64_t first, int64_t rows, int64_t seen, int64_t window, bool causal,
                            float soft_cap = 0.0f) {
    std::vector<float> y(static_cast<size_t>(rows * heads * width));
    AttentionArgs args;
    args.q = f32_matrix(q.data() + first * heads * width, rows, heads * width);
    args.y = f32_matrix(y.data(), rows, heads * width);
    args.cache = cache(), args.heads = heads, args.first = first, args.length = seen,
    args.window = window;
    args.scale = 0.4f, args.causal = causal, args.soft_cap = soft_cap;
    run(&Ops::attention, args);
    return y;
  }

  double truth(int64_t position, int64_t head, int64_t d, int64_t window, bool causal,
               double soft_cap) const {
    const int64_t kv = head / (heads / kv_heads);
    double sum = 0, weighted = 0;
    for (int64_t p = 0; p < length; ++p) {
      if (causal && p > position) continue;
      if (window > 0 && p <= position - window) continue;
      if (window > 0 && p >= position + window) continue;  // matters only without causality
      double score = 0;
      for (int64_t i = 0; i < width; ++i) {
        score +=
            static_cast<double>(q[static_cast<size_t>((position * heads + head) * width + i)]) *
            static_cast<double>(k[static_cast<size_t>((p * kv_heads + kv) * width + i)]);
      }
      score *= static_cast<double>(0.4f);
      if (soft_cap > 0) score = soft_cap * std::tanh(score / soft_cap);
      const double weight = std::exp(score);
      sum += weight;
      weighted +=
          weight * static_cast<double>(v[static_cast<size_t>((p * kv_heads + kv) * width + d)]);
    }
    return weighted / sum;
  }

  int64_t heads, kv_heads, width, length, capacity;
  std::vector<float> k, v, q, keys, values;
};

TEST(ReferenceAttention, MatchesTheFormula) {
  for (const auto& [heads, kv_heads] : {std::pair<int64_t, int64_t>{1, 1}, {4, 2}, {6, 1}}) {
    for (int64_t length : {1, 17, 300}) {
      for (int64_t window : {0, 5}) {
        for (bool causal : {true, false}) {
          Scene scene(heads, kv_heads, 12, length);
          scene.write(0, length);
          const float cap = window > 0 ? 0.5f : 0.0f;
          const std::vector<float> y = scene.attend(0, length, length, window, causal, cap);
          for (int64_t r = 0; r < length; r += 1 + length / 7) {
            for (int64_t h = 0; h < heads; ++h) {
              for (int64_t d = 0; d < 12; d += 5) {
                ASSERT_NEAR(static_cast<double>(y[static_cast<size_t>((r * heads + h) * 12 + d)]),
                            scene.truth(r, h, d, window, causal, static_cast<double>(cap)), 2e-6)
                    << heads << "/" << kv_heads << " of " << length << " row " << r << " window "
                    << window;
              }
            }
          }
        }
      }
    }
  }
}

TEST(ReferenceAttention, OneTokenAtATimeGivesTheBitsOfTheWholePrompt) {
  Scene full(4, 2, 16, 40), steps(4, 2, 16, 40);
  full.write(0, 40);
  const std::vector<float> y = full.attend(0, 40, 40, 0, true);
  for (int64_t p = 0; p < 40; ++p) {
    steps.write(p, 1);
    const std::vector<float> row = steps.attend(p, 1, p + 1, 0, true);
    const std::vector<float> same(y.begin() + p * 64, y.begin() + (p + 1) * 64);
    ASSERT_EQ(row, same) << "position " << p;
  }
}

TEST(ReferenceAttention, SeesNothingOutsideTheWindow) {
  Scene scene(2, 1, 8, 20);
  scene.write(0, 20);
  const std::vector<float> before = scene.attend(15, 5, 20, 4, true);
  for (int64_t p = 0; p < 12; ++p) {  // row 15 sees 12..15
    for (int64_t d = 0; d < 8; ++d) {
      scene.k[static_cast<size_t>(p * 8 + d)] = NAN;
      scene.v[static_cast<size_t>(p * 8 + d)] = INFINITY;
    }
  }
  scene.write(0, 12);
  EXPECT_EQ(scene.attend(15, 5, 20, 4, true), before);
}

TEST(ReferenceAttention, WithoutVisiblePositionsIsZero) {
  Scene scene(2, 1, 8, 16);
  EXPECT_EQ(scene.attend(0, 3, 0, 0, false), std::vector<float>(48, 0.0f));
  scene.write(0, 16);
  EXPECT_EQ(scene.attend(10, 2, 4, 3, false), std::vector<float>(32, 0.0f))
      << "a window beyond the last position";
}

}  // namespace
}  // namespace loom::core
