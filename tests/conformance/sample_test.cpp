// draw: rows of candidates in the order of topk, with every length around the workgroups and the
// maximum. Covers the kept candidates, overflow of the counter, and values that are not numbers.
#include <algorithm>

#include "base/text.hpp"
#include "conformance/support.hpp"

namespace loom::core::test {
namespace {

struct Rule {
  float temperature, top_p, min_p;
  uint64_t seed, index;
};

void conform_draw_of(const std::string& what, const Rows& values, const Rule& rule) {
  const int64_t rows = values.tensor().rows(), k = values.tensor().cols();
  expect_same_bits(cat(what, " ", values.tensor().shape.str(), " at ", rule.temperature, ", top_p ",
                       rule.top_p, ", min_p ", rule.min_p),
                   [&](const Runner& run) {
                     Ids ids(rows, k), next(1, rows);
                     for (int64_t i = 0; i < rows * k; ++i)
                       ids.values()[static_cast<size_t>(i)] = static_cast<int32_t>(7 * i + 3);
                     run(&Ops::sample,
                         SampleArgs{values.tensor(), ids.tensor(), next.tensor(), rule.temperature,
                                    rule.top_p, rule.min_p, rule.seed, rule.index});
                     Image image;
                     image.add_bytes(next.values().data(), rows * 4);
                     return image;
                   });
}

Rows descending(int64_t rows, int64_t k, uint64_t seed) {
  Rows values(rows, k, static_cast<int64_t>(seed % 2) * 3, seed, Values::mixed);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = values.tensor().f32_row(r);
    std::sort(row, row + k, std::greater<>());
  }
  return values;
}

}  // namespace

void conform_sample() {
  constexpr uint64_t kAlmost = 0xffffffff;
  const Rule rules[] = {
      {1.0f, 1.0f, 0.0f, 1, 0},
      {0.8f, 0.95f, 0.05f, 0x123456789abcdef0, 7},
      {0.05f, 0.5f, 0.0f, 3, kAlmost - 2},
      {4.0f, 1e-9f, 0.0f, 4, kAlmost << 32 | kAlmost},
      {1e4f, 0.7f, 0.999f, kAlmost, uint64_t{1} << 40},
      {2.0f, 1.0f, 1.0f, 6, 1},
      {1e-30f, 1.0f, 1e-9f, 7, 2},
  };
  uint64_t seed = 700;
  for (const int64_t k : {1, 2, 3, 31, 40, 63, 64, 65, 128, 255, 256}) {
    for (const int64_t rows : {0, 1, 2, 7}) {
      for (const Rule& rule : rules) conform_draw_of("", descending(rows, k, ++seed), rule);
    }
  }
  constexpr float kInf = __builtin_inff(), kNan = __builtin_nanf("");
  const float edges[][4] = {{kInf, kInf, 3, -kInf},     {kNan, kNan, kNan, kNan},
                            {-kInf, -kInf, kNan, kNan}, {2, -kInf, -kInf, kNan},
                            {3e38f, 1, -3e38f, -kInf},  {0.0f, -0.0f, -0.0f, -1e30f},
                            {5, 5, -kInf, -kInf},       {5, 5, 5, 0}};
  for (const auto& edge : edges) {
    Rows values(1, 4);
    std::copy_n(edge, 4, values.tensor().f32());
    const auto conform = [&](const Rule& rule) {
      conform_draw_of(cat("edge of ", edge[0], " ", edge[2]), values, rule);
    };
    for (uint64_t index = 0; index < 8; ++index) {
      conform({0.7f, 1.0f, 0.0f, 9, index});
      conform({0.7f, 1.0f, 1.0f, 9, index});
      conform({0.7f, 0.5f, 0.0f, 9, index});
      conform({0.7f, 0.33333334f, 0.0f, 9, index});
    }
    // Within 2^-24 of a half (tests/llm/device_sampling_test.cpp).
    conform({1.0f, 1.0f, 0.0f, 0, 9297664});
    conform({1.0f, 1.0f, 0.0f, 0, 16724226});
  }
  // Within 2^-27 of 1: the last candidate, if its weight is not rounded to 0.
  for (const float v : {-15.53692f, -16.63553f}) {
    Rows values(1, 256);
    std::fill_n(values.tensor().f32(), 256, v);
    values.at(0, 0) = 0;
    conform_draw_of(cat("all but one at ", v), values, {1.0f, 1.0f, 0.0f, 0, 38471471});
  }
}

}  // namespace loom::core::test
