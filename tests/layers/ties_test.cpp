// Layers that keep some values and drop the rest: among equal values the first ones are kept, and
// never more than requested.
#include <numeric>

#include "layers/layer_fixture.hpp"

namespace loom::core::test {
namespace {

// Rows of few different values, so that most rows have ties.
std::vector<float> tied_values(int64_t n, uint64_t stream) {
  const Rng rng(11, stream);
  std::vector<float> out(static_cast<size_t>(n));
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = std::floor(static_cast<float>(3 * rng.uniform(i))) - 1;
  return out;
}

// Indices of the k largest values of a row: larger first, then by index.
std::vector<size_t> argmax_indices(const float* row, size_t n, size_t k) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  order.resize(k);
  return order;
}

LayerConfig hard_gumbel() {
  return layer(LayerKind::softmax, {{"variant", "gumbel"}, {"hard", true}});
}

// Branches Dense, and as the gate the input itself.
LayerConfig experts(int64_t branches, int64_t top_k) {
  std::vector<LayerConfig> children;
  for (int64_t i = 0; i < branches; ++i)
    children.push_back(layer(LayerKind::dense, {{"in", branches}, {"out", 1}}));
  children.push_back(layer(LayerKind::sequential, {}));
  return layer(LayerKind::parallel, {{"combine", "filter"}, {"top_k", top_k}}, std::move(children));
}

TEST(Ties, AHardGumbelChoosesTheFirstOfEqualValues) {
  struct Case {
    std::vector<float> x, y;
  };
  const Case cases[] = {
      {{1, 1, 1, 1}, {1, 0, 0, 0}},        {{0, 2, 2, 1}, {0, 1, 0, 0}},
      {{-0.0f, 0.0f, 0, 0}, {1, 0, 0, 0}}, {{-5, -7, -5, -5}, {1, 0, 0, 0}},
      {{3, 1, 2, 4}, {0, 0, 0, 1}},
  };
  for (const Case& c : cases) {
    LayerRig rig(hard_gumbel(), Shape{1, 4});
    const std::vector<float> y = rig.run(c.x, Shape{1, 4});
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], c.y[i], 2e-7) << c.x[0] << " at " << i;
  }
}

TEST(Ties, HardGumbelsOfRandomRowsChooseOneEach) {
  for (int64_t width : {1, 2, 3, 7, 16, 33, 100}) {
    const int64_t rows = 40;
    LayerRig rig(hard_gumbel(), Shape{rows, width});
    const std::vector<float> x = tied_values(rows * width, static_cast<uint64_t>(width));
    const std::vector<float> y = rig.run(x, Shape{rows, width});
    for (int64_t r = 0; r < rows; ++r) {
      const size_t best =
          argmax_indices(x.data() + r * width, static_cast<size_t>(width), 1).front();
      for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
        ASSERT_NEAR(y[static_cast<size_t>(r * width) + i], i == best ? 1 : 0, 2e-7)
            << width << " wide, row " << r << " at " << i;
      }
    }
  }
}

// y of the experts for one row: the rig numbers the weights and biases of the branches in turn.
double expected(const float* x, int64_t branches, int64_t top_k) {
  const auto n = static_cast<size_t>(branches);
  double sum = 0, weights = 0;
  for (const size_t i : argmax_indices(x, n, static_cast<size_t>(top_k))) {
    const Values w = doubles(random_values(branches, 100 + 2 * i, 0.5f));
    const Values b = doubles(random_values(1, 101 + 2 * i, 0.5f));
    const double p = std::exp(static_cast<double>(x[i]));
    sum += p * linear(Values(x, x + n), w, b, n)[0];
    weights += p;
  }
  return sum / weights;
}

TEST(Ties, AGateKeepsTheFirstOfEqualExperts) {
  for (int64_t branches : {1, 2, 4, 9}) {
    for (int64_t top_k = 1; top_k <= branches; ++top_k) {
      const int64_t rows = 12;
      LayerRig rig(experts(branches, top_k), Shape{rows, branches});
      std::vector<float> x = tied_values(rows * branches, static_cast<uint64_t>(branches));
      std::fill_n(x.begin(), branches, 0.25f);  // all alike
      const std::vector<float> y = rig.run(x, Shape{rows, branches});
      for (int64_t r = 0; r < rows; ++r) {
        ASSERT_NEAR(y[static_cast<size_t>(r)], expected(x.data() + r * branches, branches, top_k),
                    2e-6)
            << top_k << " of " << branches << ", row " << r;
      }
    }
  }
}

}  // namespace
}  // namespace loom::core::test
