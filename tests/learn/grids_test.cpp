// The seven-layer suite: ten families of layers on grids of 1, 2 and 3 cells an edge, seven layers
// a cell, in every dtype. The loss must fall to 0.9 of its start for floats and types of 8 bits and
// more, and must not rise for lower ones. Residuals are real, recurrent layers see eight steps.
#include <cstdlib>
#include <numeric>

#include "base/text.hpp"
#include "learn/every_kind.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kLayers = 7;

struct Family {
  std::string name;
  Shape input;
  // Layer `l` of `last` + 1: the last one of a grid may differ.
  std::function<LayerConfig(int64_t l)> layer_at;
  int steps = 50;
  double deep_rate = 0.001;  // on the grid of 189 layers
};

// Pre-norm, as deep residual networks are built.
LayerConfig residual_of(LayerConfig inner) {
  return layer(LayerKind::residual, {},
               {layer(LayerKind::rms_norm, {{"width", 8}}), std::move(inner)});
}

std::vector<Family> families() {
  using K = LayerKind;
  const auto embed_or_dense = [](int64_t l) {
    return l == 0 ? layer(K::embedding, {{"vocab", 20}, {"width", 8}}) : dense(8, 8, "tanh");
  };
  return {
      {"Dense", {4, 8}, [](int64_t) { return dense(8, 8, "tanh"); }},
      {"SwiGLU",
       {4, 8},
       [](int64_t) {
         return residual_of(layer(K::swiglu, {{"width", 8}, {"inner", 16}, {"bias", true}}));
       }},
      {"MultiHeadAttention",
       {2, 8, 8},
       [](int64_t) {
         return residual_of(layer(K::multi_head_attention, {{"width", 8},
                                                            {"heads", 2},
                                                            {"kv_heads", 2},
                                                            {"head_dim", 4},
                                                            {"bias", true},
                                                            {"out_bias", true}}));
       }},
      {"CNN1",
       {2, 3, 8},
       [](int64_t) {
         return layer(K::cnn1,
                      {{"channels", 3}, {"filters", 3}, {"padding", 1}, {"activation", "tanh"}});
       }},
      {"CNN2",
       {2, 2, 4, 4},
       [](int64_t) {
         return layer(K::cnn2,
                      {{"channels", 2}, {"filters", 2}, {"padding", 1}, {"activation", "tanh"}});
       }},
      {"CNN3",
       {2, 2, 3, 3, 3},
       [](int64_t) {
         return layer(K::cnn3,
                      {{"channels", 2}, {"filters", 2}, {"padding", 1}, {"activation", "tanh"}});
       }},
      {"RNN",
       {2, 8, 6},
       [](int64_t) {
         return layer(K::rnn, {{"in", 6}, {"hidden", 6}});
       }},
      {"LSTM",
       {2, 8, 6},
       [](int64_t) {
         return layer(K::lstm, {{"in", 6}, {"hidden", 6}});
       }},
      {"Embedding", {4, 6}, embed_or_dense},
      {"Residual",
       {4, 8},
       [](int64_t l) { return l % 2 == 0 ? dense(8, 8, "tanh") : layer(K::residual, {}); },
       400,
       0.0006},
  };
}

GridSpec filled(const Family& family, int64_t edge) {
  GridSpec grid(edge, edge, edge, kLayers);
  for (int64_t i = 0; i < grid.size(); ++i) {
    EXPECT_TRUE(grid.put(grid.coord(i), {family.layer_at(i)}).ok());
  }
  return grid;
}

struct LearnCase {
  Family family;
  int64_t edge;
  DType dtype;
};

std::ostream& operator<<(std::ostream& out, const LearnCase& c) {
  return out << c.family.name << " " << c.edge << "^3 " << dtype_name(c.dtype);
}

// Seven layers in every number type. Larger grids run every fourth, a different one for each family
// and edge. LOOM_EVERY_CASE runs all of them (the step `grids` of bench/nightly.sh).
std::vector<LearnCase> grid_cases() {
  const bool every = std::getenv("LOOM_EVERY_CASE") != nullptr;
  std::vector<LearnCase> all;
  size_t turn = 0;
  for (const Family& family : families()) {
    for (int64_t edge : {1, 2, 3}) {
      size_t at = turn++;
      for (const DTypeInfo& info : dtype_table()) {
        if (edge == 1 || every || at++ % 4 == 0) all.push_back({family, edge, info.dtype});
      }
    }
  }
  return all;
}

// Losses of few bits jump from step to step, so one alone says little.
double mean_of_ten(std::vector<double>::const_iterator first) {
  return std::accumulate(first, first + 10, 0.0) / 10;
}

class SevenLayers : public ::testing::TestWithParam<LearnCase> {};

TEST_P(SevenLayers, Train) {
  const auto& [family, edge, dtype] = GetParam();
  TrainStepOptions options;
  options.clip = {Clip::norm, 1.0f};
  TrainRig rig(filled(family, edge), family.input, DType::f32, options, cpu_ops(best_isa()), 1,
               dtype);
  ASSERT_TRUE(rig.ready());
  // The deeper, the smaller the steps: 7, 56 and 189 layers.
  const double rate = edge == 1 ? 0.01 : edge == 2 ? 0.003 : family.deep_rate;
  const std::vector<double> losses = rig.run(family.steps, rate);
  const bool fine = dtype_info(dtype).bits >= 8;
  EXPECT_LE(mean_of_ten(losses.end() - 10), (fine ? 0.9 : 1.0) * mean_of_ten(losses.begin()));
}
INSTANTIATE_TEST_SUITE_P(Grids, SevenLayers, ::testing::ValuesIn(grid_cases()), [](const auto& c) {
  return cat(c.param.family.name, "_", c.param.edge, "_", dtype_name(c.param.dtype));
});

}  // namespace
}  // namespace loom::core::test
